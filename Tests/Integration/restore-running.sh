#!/usr/bin/env bash
# A backup is restored under a running server: no revision is assigned twice, whatever the server does meanwhile.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server
owner_url=$(server_setting SALTERN_OWNER_DATABASE_URL)

# facts SQL: the result of the statement, as the owner, also without a schema saltern.
facts() { psql --no-psqlrc --tuples-only --no-align --command "$1" "$owner_url"; }
schemas() { facts "SELECT string_agg(nspname, ',' ORDER BY nspname) FROM pg_namespace WHERE nspname ~ '^saltern'"; }
begin_restore() {
    saltern restore "$work/backup" >"$work/said" 2>&1 </dev/null &
    restoring=$!
}

scenario "a backup is made, and then an item changes: a device has seen revision 2"
register ada
create_item
saltern backup "$work/backup" >/dev/null 2>&1
replace_item '"1"'
expect_status 200
expect_header etag '"2"'
request GET /v1/changes
cursor=$(json .cursor)

scenario "while a server holds sessions and is deaf nothing comes back, and who has them is told"
kill -STOP "$(own_server_process)"
facts 'DROP SCHEMA saltern CASCADE' >/dev/null 2>&1
begin_restore
result=0
wait "$restoring" || result=$?
kill -CONT "$(own_server_process)"
((result == 1)) || fail "the restore to be refused: $(<"$work/said")"
grep --quiet 'servers are still connected to the database: [0-9]* of saltern_app (saltern): stop them' "$work/said" ||
    fail "who is connected: $(<"$work/said")"
[[ -z $(schemas) ]] || fail "no schema of ours, not even the mark: $(schemas)"

scenario "a server that runs lets go; what has come back has its new base from the first moment on"
psql --no-psqlrc --quiet "$owner_url" --command 'SELECT pg_advisory_lock(32476740758893166)' --command '\echo held' \
    --command 'SELECT pg_sleep(600)' >"$work/migrating" 2>&1 &
migrating=$!
wait_until 180 grep --quiet held "$work/migrating" || fail "somebody who migrates for long"
begin_restore
waits_to_migrate() { [[ $(facts "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 1 ]]; }
wait_until 180 waits_to_migrate || fail "everything to be back but what comes afterwards: $(<"$work/said")"
[[ $(facts 'SELECT revision_base > 1 << 40 AND fingerprint = saltern.database_fingerprint() FROM saltern.installation') == t ]] ||
    fail "the base above all that was given out: $(facts 'SELECT revision_base FROM saltern.installation')"

scenario "meanwhile the server gives nothing out"
for _ in {1..5}; do
    once=yes replace_item '"1"'
    expect_problem 503 database_unavailable
done

scenario "when all is done it goes on by itself, and what it gives out is above everything from before"
superuser "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'" >/dev/null
wait "$migrating" 2>/dev/null || true
wait "$restoring" || fail "the restore to succeed: $(<"$work/said")"
wait_until 180 item_is_read || fail "the item to be there"
expect_header etag '"1"'
request GET "/v1/changes?since=$cursor"
expect_problem 410 cursor_expired
replace_item '"2"'
expect_problem 412 precondition_failed
replace_item '"1"'
expect_status 200
(($(json .revision) > 1 << 40)) || fail "a revision above all others"
