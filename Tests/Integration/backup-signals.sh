#!/usr/bin/env bash
# A signal ends a backup or a restore at once, with the program that it has started. Nothing remains.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server

# begin OWNER-URL COMMAND…: in the background, as a process that signals reach.
begin() {
    exec_with_settings SALTERN_OWNER_DATABASE_URL="$1" SALTERN_DATABASE_URL="${1/saltern_owner/saltern_app}" \
        "$executable" "${@:2}" >"$work/said" 2>&1 </dev/null 8>&- &
    command=$!
}

# ends SIGNAL STATUS: the command, and the programs that it has started.
ends() {
    local program programs result=0
    programs=$(pgrep --parent "$command") || fail "a program that the command has started: $(<"$work/said")"
    kill -"$1" "$command"
    wait_until 180 is_gone "$command" || fail "the command to end by $1: $(<"$work/said")"
    wait "$command" || result=$?
    ((result == $2)) || fail "exit status $2, not $result: $(<"$work/said")"
    for program in $programs; do
        is_gone "$program" || fail "the program to have ended before the command"
    done
    grep --quiet 'ended by a signal' "$work/said" || fail "it to say so: $(<"$work/said")"
}

waits_for_lock() { [[ $(superuser "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = '$1'") == 1 ]]; }

# hold URL SQL: executes this in a transaction that stays open.
hold() {
    mkfifo "$work/held"
    psql --no-psqlrc --quiet "$1" <"$work/held" >"$work/holder" 2>&1 &
    holder=$!
    exec 8>"$work/held"
    printf '%s\n' 'BEGIN;' "$2;" '\echo held' >&8
    wait_until 180 grep --quiet held "$work/holder" || fail "it to be held: $(<"$work/holder")"
}

release() {
    exec 8>&-
    wait "$holder"
    rm -- "$work/held"
}

mkdir "$work/backups"
url=$(server_setting SALTERN_OWNER_DATABASE_URL)
elsewhere=${url%/saltern}/elsewhere

scenario "a backup that waits is ended by Ctrl-C and by SIGTERM, and nothing is left of it"
hold "$url" 'LOCK TABLE saltern.accounts IN ACCESS EXCLUSIVE MODE'
for signal in INT:130 TERM:143; do
    begin "$url" backup "$work/backups"
    wait_until 180 waits_for_lock pg_dump || fail "pg_dump to wait: $(<"$work/said")"
    ends "${signal%:*}" "${signal#*:}"
    [[ -z $(ls --almost-all "$work/backups") ]] || fail "nothing in the folder: $(ls --almost-all "$work/backups")"
done
release

marks() { psql --no-psqlrc -Atc "SELECT nspname FROM pg_namespace WHERE nspname ~ '^saltern'" "$elsewhere"; }

scenario "a restore that waits is ended in the same way; the mark stays while somebody else may make the schema"
saltern backup "$work/backup" >/dev/null 2>&1
superuser 'CREATE DATABASE elsewhere OWNER saltern_owner'
hold "$elsewhere" 'CREATE SCHEMA saltern'
begin "$elsewhere" restore "$work/backup"
wait_until 180 waits_for_lock psql || fail "psql to wait: $(<"$work/said")"
ends TERM 143
release
grep --quiet 'the schema saltern_restoring stays' "$work/said" || fail "what to do next: $(<"$work/said")"
[[ $(marks) == saltern_restoring ]] || fail "the mark and nothing else of ours: $(marks)"

scenario "what a killed restore has left never comes, and the next one succeeds"
hold "$elsewhere" 'CREATE SCHEMA saltern'
begin "$elsewhere" restore "$work/backup"
wait_until 180 waits_for_lock psql || fail "psql to wait: $(<"$work/said")"
programs=$(pgrep --parent "$command")
kill -KILL "$command"
wait "$command" 2>/dev/null || true
release
for program in $programs; do
    wait_until 180 is_gone "$program" || fail "what it has started to end with it"
done
[[ $(marks) == saltern_restoring ]] || fail "the mark and nothing else of ours: $(marks)"
begin "$elsewhere" restore "$work/backup"
wait "$command" || fail "the next restore to succeed: $(<"$work/said")"
[[ $(marks) == saltern ]] || fail "the schema and no mark: $(marks)"

scenario "a program that somebody else ends is named, with the signal; nothing has come back"
superuser 'CREATE DATABASE another OWNER saltern_owner'
mkdir "$work/programs"
# ended PROGRAM SIGNAL ARGUMENT WORDS: what a restore says of a program that is ended where it is given that argument.
ended() {
    cat >"$work/programs/$1" <<PROGRAM
#!/bin/sh
case "\$*" in *"$3"*) kill -"$2" \$\$ ;; esac
PATH=\${PATH#*:} exec $1 "\$@"
PROGRAM
    chmod 0755 "$work/programs/$1"
    PATH=$work/programs:$PATH begin "${url%/saltern}/another" restore "$work/backup"
    if wait "$command"; then fail "a failure: $(<"$work/said")"; fi
    grep --quiet "$4" "$work/said" || fail "'$4' in: $(<"$work/said")"
    rm -- "$work/programs/$1"
}
ended psql KILL --no-psqlrc 'psql was ended by signal 9 (Killed)'
ended pg_restore TERM --exit-on-error 'pg_restore was ended by signal 15 (Terminated)'
ended pg_restore KILL --list 'pg_restore was ended by signal 9 (Killed)'
[[ -z $(psql --no-psqlrc -Atc "SELECT nspname FROM pg_namespace WHERE nspname ~ '^saltern'" "${url%/saltern}/another") ]] ||
    fail "no schema of ours"

scenario "an address that swallows everything is not waited for without end"
python3 -c 'import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
time.sleep(120)' >"$work/silent" &
silent=$!
wait_until 180 test -s "$work/silent" || fail "a database that never answers"
begin "postgresql://saltern_owner@127.0.0.1:$(<"$work/silent")/elsewhere?connect_timeout=2" restore "$work/backup"
wait_until 180 is_gone "$command" || fail "the restore to give up: $(<"$work/said")"
if wait "$command"; then fail "a failure: $(<"$work/said")"; fi
grep --quiet 'no firewall drops packets' "$work/said" || fail "a hint about the way: $(<"$work/said")"
kill "$silent"
wait "$silent" || true
