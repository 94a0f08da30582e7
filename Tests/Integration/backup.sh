#!/usr/bin/env bash
# A backup is made while the server runs, and everything is lost but that file and the keys: a new cluster, in which there are
# no roles, has it all again.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/postgres.sh
source "$repository/scripts/lib/postgres.sh"

# shellcheck disable=SC2317  # the trap calls it
finish_with_cluster() {
    local result=$?
    stop_own_server || result=1
    postgres_stop
    (exit "$result") || finish
    finish
}
trap finish_with_cluster EXIT

# refused WHAT COMMAND…: it fails, and says so in words that WHAT matches.
refused() {
    local what=$1
    shift
    if "$@" >"$work/refusal" 2>&1 </dev/null; then fail "$* to refuse: $(<"$work/refusal")"; fi
    grep --quiet -- "$what" "$work/refusal" || fail "'$what' in: $(<"$work/refusal")"
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
grep --quiet 'tables, reading it back' "$work/progress" || fail "progress: $(<"$work/progress")"
[[ $(find "$work/backups" -type f | wc --lines) == 1 ]] || fail "one file in the folder"

scenario "no file is overwritten, and nothing is left of a backup that fails"
refused 'is there already' saltern backup "$backup"
refused 'cannot write' saltern backup "$work/nowhere/backup"
without_programs() (
    # shellcheck source=/dev/null
    source "$own_home/run.env"
    unset "${!SALTERN_TEST_@}"
    env PATH=/nonexistent "$executable" "$@"
)
refused 'package postgresql-client' without_programs backup "$work/backups/none"
[[ $(find "$work/backups" -type f | wc --lines) == 1 ]] || fail "one file in the folder still"

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
elsewhere() (
    # shellcheck source=/dev/null
    source "$own_home/run.env"
    unset "${!SALTERN_TEST_@}"
    export SALTERN_DATABASE_URL=$server_url SALTERN_OWNER_DATABASE_URL=$owner_url
    "$executable" "$@"
)

scenario "what is no whole backup is refused, and leaves nothing behind"
printf 'no backup' >"$work/text"
refused 'input file' elsewhere restore "$work/text"
refused 'No such file' elsewhere restore "$work/nothing"
head --bytes -100 "$backup" >"$work/half"
export SALTERN_SUPERUSER_DATABASE_URL=$superuser_url
refused "end of file" elsewhere restore "$work/half"
[[ $(psql "$owner_url" --no-psqlrc -Atc "SELECT count(*) FROM pg_namespace WHERE nspname = 'saltern'") == 0 ]] ||
    fail "no schema after half a backup"

scenario "the new cluster has no roles: restore makes them, with the passwords of the URLs, which no log learns"
psql_as_superuser --command 'DROP DATABASE saltern; ' --command 'DROP ROLE saltern_app, saltern_owner' --command 'DROP ROLE saltern_server'
said=$(elsewhere restore "$backup" 2>"$work/progress")
unset SALTERN_SUPERUSER_DATABASE_URL
[[ $said == *'nothing to do'*'revisions go on above '*'restored '*' tables; next: saltern doctor'* ]] || fail "all its steps: $said"
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
[[ $(elsewhere restore "$backup" --end-sessions) == *'1 sessions have ended'* ]] || fail "the session to end"
start_own_server SALTERN_DATABASE_URL="$server_url" SALTERN_OWNER_DATABASE_URL="$owner_url"
request GET /v1/account
expect_problem 401 unauthenticated
log_in
