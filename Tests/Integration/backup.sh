#!/usr/bin/env bash
# A backup is made while the server runs, and everything except that file and the keys is lost. A new cluster without roles gets
# all data back.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/postgres.sh
source "$repository/scripts/lib/postgres.sh"

at_end=(stop_own_server postgres_stop)

# refused WHAT COMMAND…: it fails, and says so in words that WHAT matches.
refused() {
    local what=$1
    shift
    if "$@" >"$work/refusal" 2>&1 </dev/null; then fail "$* to refuse: $(<"$work/refusal")"; fi
    grep --quiet -- "$what" "$work/refusal" || fail "'$what' in: $(<"$work/refusal")"
}

not_restoring() { [[ $(psql "$owner_url" --no-psqlrc -Atc "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0 ]]; }

# begin_waiting_server: a server in the background, which has said in its log that it waits for a restore.
begin_waiting_server() {
    other_port=$(free_port)
    begin_other_server "$work/serving" SALTERN_DATABASE_URL="$server_url" SALTERN_LISTEN="127.0.0.1:$other_port"
    wait_until 180 grep --quiet 'a restore of the database is not finished' "$work/serving" ||
        fail "the log to say so: $(<"$work/serving")"
}

end_waiting_server() {
    end_process "$other_pid" TERM 180
    wait "$other_pid" 2>/dev/null || true
}

start_own_server

scenario "a backup is made while the server runs, for its owner's eyes, and read back"
register ada
create_item
request GET /v1/changes
cursor=$(json .cursor)
mkdir "$work/backups"
said=$(saltern backup "$work/backups" 2>"$work/progress")
[[ $said == "$work/backups/saltern-"*"Z.backup: "*" bytes, read back" ]] || fail "the file's name and size, not: $said"
backup=${said%%: *}
[[ $(stat --format %a "$backup") == 600 ]] || fail "a file of mode 600, not $(stat --format %a "$backup")"
[[ ! -s $work/progress ]] || fail "no progress where there is no terminal: $(<"$work/progress")"
[[ $(find "$work/backups" -type f | wc --lines) == 1 ]] || fail "one file in the folder"

scenario "its last line is the SHA-256 of the rest, for whoever has no saltern too, and pg_restore does not mind it"
digest=$(head --lines -1 "$backup" | sha256sum)
[[ $(tail --lines 1 "$backup") == *" ${digest%% *}" ]] || fail "the digest ${digest%% *}, not $(tail --lines 1 "$backup")"
[[ $(pg_restore --list "$backup") == *'TABLE DATA saltern accounts'* ]] || fail "pg_restore to list what is in it"
pg_restore --file /dev/null <"$backup" || fail "pg_restore to read it"
# shellcheck disable=SC2002  # a pipe, in which nobody can go back
cat "$backup" | pg_restore --file /dev/null || fail "pg_restore to read it from a pipe"

scenario "no file is overwritten, and nothing is left of a backup that fails"
refused 'exists already' saltern backup "$backup"
refused 'cannot write' saltern backup "$work/nowhere/backup"
refused 'there is no folder' saltern backup "$work/nowhere/"
without_programs() { with_settings PATH="$work/missing" "$executable" "$@"; }
refused 'package postgresql-client' without_programs backup "$work/backups/none"
[[ $(find "$work/backups" -type f | wc --lines) == 1 ]] || fail "one file in the folder still"

scenario "a pg_dump that is older than the server is named before anything is written, and by the doctor"
mkdir "$work/older"
printf '#!/bin/sh\necho "pg_dump (PostgreSQL) 14.9"\n' >"$work/older/pg_dump"
chmod 0755 "$work/older/pg_dump"
with_old_dump() { PATH=$work/older:$PATH saltern "$@"; }
refused 'nothing was written: pg_dump is of PostgreSQL 14 .*install postgresql-client-15' with_old_dump backup "$work/backups/none"
[[ $(find "$work/backups" -type f | wc --lines) == 1 ]] || fail "one file in the folder still"
with_old_dump doctor --json >"$work/doctor" && fail "the doctor to find a problem: $(<"$work/doctor")"
[[ $(jq --raw-output '.findings[] | select(.subject == "backup_program") | .severity' "$work/doctor") == problem ]] ||
    fail "the problem: $(<"$work/doctor")"

scenario "a backup is in the audit log, and the doctor reports its age"
[[ $(saltern audit list --json | jq --raw-output '.entries[0].action') == database_backed_up ]] || fail "a row: $(saltern audit list)"
saltern doctor --json >"$work/doctor" || true
[[ $(jq --raw-output '.findings[] | select(.subject == "backup_age") | .severity + " " + .text' "$work/doctor") == \
    'fine the last backup that is recorded is 0 hours old' ]] || fail "the age: $(<"$work/doctor")"

scenario "a file that comes under the name while a backup is made stays, and what a killed backup left is in nobody's way"
printf 'killed' >"$work/backups/slow.unfinished"
mkdir "$work/programs"
cat >"$work/programs/pg_dump" <<PROGRAM
#!/bin/sh
printf 'precious' >"$work/backups/slow"
PATH=\${PATH#*:} exec pg_dump "\$@"
PROGRAM
chmod 0755 "$work/programs/pg_dump"
with_slow_dump() { PATH=$work/programs:$PATH saltern "$@"; }
refused 'slow exists already' with_slow_dump backup "$work/backups/slow"
[[ $(<"$work/backups/slow") == precious ]] || fail "the other file, not $(head --bytes 20 "$work/backups/slow")"
rm -- "$work/backups/slow"
saltern backup "$work/backups/slow" >/dev/null 2>&1 || fail "a backup beside what a killed one left"
rm -- "$work/backups/slow" "$work/backups/slow.unfinished"
[[ $(find "$work/backups" -type f | wc --lines) == 1 ]] || fail "one file in the folder still"

scenario "a backup that this program would not restore is kept, with status 1"
query "INSERT INTO saltern.schema_migrations (version, name, checksum, oldest_program) VALUES (99, 'later', sha256(''), 99)"
result=0
saltern backup "$work/newer" >/dev/null 2>"$work/said" || result=$?
[[ $result == 1 && -s $work/newer ]] || fail "a file that is kept, and status 1: $result $(<"$work/said")"
query 'DELETE FROM saltern.schema_migrations WHERE version = 99'

scenario "a change after the backup is lost with the cluster"
request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" --header 'If-Match: "1"'
expect_status 200
stop_own_server
postgres_open "$own_home/other"
postgres_start "$work/other.log" -c log_statement=all
superuser_url=$(postgres_url postgres postgres)
owner_url=$(postgres_url saltern_owner:open-sesame-1 saltern)
server_url=$(postgres_url saltern_app:open-sesame-2 saltern)

# elsewhere ARGUMENT…: the command, talking to the new cluster.
elsewhere() {
    with_settings SALTERN_DATABASE_URL="$server_url" SALTERN_OWNER_DATABASE_URL="$owner_url" timeout 300 "$executable" "$@"
}

scenario "what is no whole backup is refused, and leaves nothing behind"
printf 'no backup' >"$work/text"
refused 'input file' elsewhere restore "$work/text"
refused 'No such file' elsewhere restore "$work/nothing"
refused 'not a regular file' elsewhere restore "$work"
refused 'not a regular file' elsewhere restore <(cat "$backup")
head --bytes -100 "$backup" >"$work/cut"
refused 'cut is damaged' elsewhere restore "$work/cut"
# As version 0.9.0 wrote it.
head --bytes "-$(($(tail --lines 1 "$backup" | wc --bytes) + 1))" "$backup" >"$work/old"
head --bytes -100 "$work/old" >"$work/half"
export SALTERN_SUPERUSER_DATABASE_URL=$superuser_url
refused "end of file" elsewhere restore "$work/half"
SALTERN_SUPERUSER_DATABASE_URL=${superuser_url/postgres@/nobody@} \
    refused 'SALTERN_SUPERUSER_DATABASE_URL: psql: error: .*nobody' elsewhere restore "$backup"
[[ $(psql_as_superuser -Atc "SELECT count(*) FROM pg_roles WHERE rolname ~ '^saltern_'") == 0 ]] ||
    fail "not even roles after half a backup"

scenario "the new cluster has no roles: restore makes them, with the passwords of the URLs, which no log learns"
refused 'migration 99 (later) is unknown' elsewhere restore "$work/newer"
[[ $(psql_as_superuser -Atc "SELECT count(*) FROM pg_roles WHERE rolname ~ '^saltern_'") == 0 ]] ||
    fail "not even roles after a backup of a newer version"

scenario "a backup of which one bit is another is refused before anything is made"
for number in {0..40}; do
    cp -- "$backup" "$work/flipped"
    perl -e 'open my $file, "+<", $ARGV[0] or die; seek $file, $ARGV[1], 0; read $file, my $byte, 1;
        seek $file, $ARGV[1], 0; print $file chr(ord($byte) ^ 1 << $ARGV[1] % 8)' \
        "$work/flipped" $(($(stat --format %s "$backup") * number / 41 + number))
    ! cmp --quiet "$backup" "$work/flipped" || fail "a damaged backup"
    refused 'nothing was restored: .*/flipped is damaged' elsewhere restore "$work/flipped"
done
[[ $(psql_as_superuser -Atc "SELECT count(*) FROM pg_roles WHERE rolname ~ '^saltern_'") == 0 ]] || fail "no roles"

scenario "the whole one is restored under another name, in a database that is made for it"
cp -- "$backup" "$work/another name"
said=$(elsewhere restore "$work/another name" 2>"$work/progress")
unset SALTERN_SUPERUSER_DATABASE_URL
! grep --quiet SHA-256 "$work/progress" || fail "no warning: $(<"$work/progress")"
[[ $said == *'nothing to do'*'revisions continue above '*'restored '*' tables; next: saltern doctor'* ]] || fail "all its steps: $said"
[[ $(psql_as_superuser -Atc "SELECT count(*) FROM pg_authid WHERE rolname ~ '^saltern_' AND rolpassword LIKE 'SCRAM-SHA-256%'") == 2 ]] ||
    fail "two roles with passwords"
! grep --quiet open-sesame "$work/other.log" || fail "no password in PostgreSQL's log"

scenario "doctor finds nothing to mend, and the schema is what it was"
elsewhere doctor >"$work/doctor" || fail "doctor to be content: $(<"$work/doctor")"
[[ $(elsewhere migrate verify) == 'the schema is current' ]] || fail "the schema to be current"
elsewhere audit verify >/dev/null || fail "the audit log to be whole"

scenario "people log in with what they know, and find their items; devices list everything once"
start_own_server SALTERN_DATABASE_URL="$server_url" SALTERN_OWNER_DATABASE_URL="$owner_url"
log_in
request GET "/v1/items/$id"
expect_status 200
expect_json .body "$content"
request GET "/v1/changes?since=$cursor"
expect_problem 410 cursor_expired

scenario "a database that has a schema is left as it is"
refused 'rename or drop it' elsewhere restore "$backup"
request GET "/v1/items/$id"
expect_status 200

scenario "once it is out of the way, the owner alone restores, and ends what the backup brought back"
stop_own_server
psql "$owner_url" --no-psqlrc --quiet --command 'ALTER SCHEMA saltern RENAME TO saltern_before'
psql "$owner_url" --no-psqlrc --quiet >"$work/migrating" \
    --command 'SELECT pg_advisory_lock(32476740758893166)' --command '\echo held' --command 'SELECT pg_sleep(600)' &
migrating=$!
wait_until 180 grep --quiet held "$work/migrating" || fail "somebody who migrates for long"
# begin_restore: in the background, until all is back but what comes afterwards.
begin_restore() {
    exec_with_settings SALTERN_DATABASE_URL="$server_url" SALTERN_OWNER_DATABASE_URL="$owner_url" \
        "$executable" restore "$backup" --end-sessions >"$work/said" 2>&1 </dev/null &
    restoring=$!
    wait_until 180 waits_to_migrate 1 || fail "everything to be back but what comes afterwards: $(<"$work/said")"
}
# waits_to_migrate COUNT: so many do.
waits_to_migrate() { [[ $(psql "$owner_url" --no-psqlrc -Atc "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == "$1" ]]; }
begin_restore

scenario "while somebody restores nobody else does, nor finishes it"
refused 'a restore of the database is under way (process [0-9]* of PostgreSQL)' elsewhere restore "$backup"
refused 'a restore of the database is under way' elsewhere restored

scenario "a restore that is ended half-way says how to go on, and doctor says it too"
kill -TERM "$restoring"
result=0
wait "$restoring" || result=$?
((result == 143)) || fail "exit status 143, not $result: $(<"$work/said")"
grep --quiet 'finish it with .saltern migrate up.' "$work/said" || fail "what to do next: $(<"$work/said")"
refused 'problem: a restore of the database is not finished' elsewhere doctor
wait_until 180 waits_to_migrate 0 || fail "nothing to be left of it at the server"
psql "$owner_url" --no-psqlrc --quiet --command 'DROP SCHEMA saltern CASCADE' 2>/dev/null
begin_restore

scenario "a restore that is killed half-way brings no session back: no server uses the database until somebody finishes it"
kill -KILL "$restoring"
wait "$restoring" 2>/dev/null || true
psql_as_superuser --output /dev/null \
    --command "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
wait "$migrating" 2>/dev/null || true
wait_until 180 not_restoring || fail "nobody to migrate any more"
begin_waiting_server
! grep --quiet server_started "$work/serving" || fail "no server: $(<"$work/serving")"
refused 'restore of the database is not finished' elsewhere restore "$backup"
elsewhere migrate up >/dev/null
[[ $(elsewhere restored --end-sessions) == *'1 session has ended'* ]] || fail "the session to end"
started() { curl --silent --noproxy '*' --max-time 180 --output /dev/null --cacert "$certificate" "https://localhost:$other_port/v1/service"; }
wait_until 180 started || fail "the server that waited to serve: $(<"$work/serving")"
end_waiting_server
start_own_server SALTERN_DATABASE_URL="$server_url" SALTERN_OWNER_DATABASE_URL="$owner_url"
request GET /v1/account
expect_problem 401 unauthenticated
log_in
stop_own_server

scenario "where a restore has brought nothing back, nothing goes on but a restore"
psql_as_superuser --command 'CREATE DATABASE awaited OWNER saltern_owner'
owner_url=$(postgres_url saltern_owner:open-sesame-1 awaited)
server_url=$(postgres_url saltern_app:open-sesame-2 awaited)
psql "$owner_url" --no-psqlrc --quiet --command 'CREATE SCHEMA saltern_restoring'
refused 'restore again' elsewhere migrate up
refused 'restore again' elsewhere migrate distribute
refused 'restore again' elsewhere doctor
begin_waiting_server
end_waiting_server

scenario "a backup without a digest, as version 0.9.0 wrote it, is restored with a warning; not so what ends within a string or changes meanwhile"
perl -0777 -pe 's/    streak integer/   "streak integer/' "$work/old" >"$work/torn"
! cmp --quiet "$work/old" "$work/torn" || fail "a damaged backup"
refused 'ERROR' elsewhere restore "$work/torn"
cp -- "$backup" "$work/rewritten"
cat >"$work/programs/pg_restore" <<PROGRAM
#!/bin/sh
case "\$*" in *--exit-on-error*) cat "$work/old" >"$work/rewritten" ;; esac
PATH=\${PATH#*:} exec pg_restore "\$@"
PROGRAM
chmod 0755 "$work/programs/pg_restore"
rewriting() { PATH=$work/programs:$PATH elsewhere "$@"; }
refused 'the backup changed while it was read' rewriting restore "$work/rewritten"
cmp --quiet "$work/old" "$work/rewritten" || fail "the backup to be written to"
elsewhere restore "$work/old" >"$work/said" 2>&1 || fail "the whole one to be restored: $(<"$work/said")"
grep --quiet 'old has no SHA-256 in its last line' "$work/said" || fail "a warning: $(<"$work/said")"

scenario "a backup of a database that no server has used comes back, with as few connections as the handbook says"
psql "$owner_url" --no-psqlrc --quiet --command 'DROP SCHEMA saltern CASCADE' 2>/dev/null
elsewhere migrate up >/dev/null
elsewhere backup "$work/unused" >/dev/null 2>&1
psql "$owner_url" --no-psqlrc --quiet --command 'DROP SCHEMA saltern CASCADE' 2>/dev/null
psql_as_superuser --quiet --command 'ALTER ROLE saltern_owner CONNECTION LIMIT 6'
# A session of a program that has ended counts until PostgreSQL has ended it as well.
has_ended_sessions() {
    [[ $(psql_as_superuser -Atc "SELECT count(*) FROM pg_stat_activity WHERE usename = 'saltern_owner'") == 0 ]]
}
comes_back() {
    wait_until 180 has_ended_sessions || fail "no session to be left"
    ! elsewhere restore "$work/unused" --end-sessions >"$work/said" 2>"$work/errors" || return 0
    grep --quiet 'too many connections\|CONNECTION LIMIT' "$work/said" "$work/errors" ||
        fail "it to be restored: $(<"$work/said") $(<"$work/errors")"
    psql "$owner_url" --no-psqlrc --quiet --command 'DROP SCHEMA IF EXISTS saltern CASCADE' 2>/dev/null || true
    return 1
}
wait_until 180 comes_back || fail "it to be restored: $(<"$work/said") $(<"$work/errors")"
grep --quiet 'no server has used this database yet' "$work/said" || fail "it to say so: $(<"$work/said")"
wait_until 180 has_ended_sessions || fail "no session to be left"
elsewhere migrate up >/dev/null || fail "no mark to be left"
