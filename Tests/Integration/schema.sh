#!/usr/bin/env bash
# Server and schema must fit: a server rejects a newer or an older schema.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# refused COMMAND…: runs it, wants it to fail, and keeps what it said in $work/refusal.
refused() {
    if "$@" >"$work/refusal" 2>&1 </dev/null; then fail "$* to refuse: $(cat "$work/refusal")"; fi
}

start_own_server

scenario "a current schema verifies, and migrating again does nothing"
[[ $(saltern migrate verify) == 'the schema is current' ]] || fail "the schema to be current"
[[ $(saltern migrate up) == 'nothing to do' ]] || fail "nothing to do"
saltern migrate status | grep '^0001_accounts_sessions_items.sql  applied ' >/dev/null || fail "the first migration in the list"

scenario "the server's own role cannot change the schema"
run_as_server() {
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --command "$1" "$(server_setting SALTERN_DATABASE_URL)"
}
refused run_as_server 'CREATE TABLE saltern.mine (id integer)'
refused run_as_server 'DROP TABLE saltern.items'
refused run_as_server 'UPDATE saltern.plans SET max_items = 0'
refused run_as_server 'DELETE FROM saltern.schema_migrations'
refused run_as_server "UPDATE saltern.installation SET salt_prefix = 'mine:'"

scenario "a schema that is newer than the program is refused by migrate, by serve and by readiness"
query "INSERT INTO saltern.schema_migrations (version, name, checksum) VALUES (9999, 'from_the_future', sha256(''))"
refused saltern migrate up
refused saltern migrate verify
serve_elsewhere() { with_settings SALTERN_LISTEN="127.0.0.1:$(free_port)" timeout 300 "$executable" serve; }
refused serve_elsewhere
# A node asks its database at most once a second.
does_not_fit() { request GET /v1/health/ready && [[ $status == 503 && $(json .code) == schema_mismatch ]]; }
wait_until 180 does_not_fit || fail "a schema that does not fit"
expect_problem 503 schema_mismatch
expect_header retry-after 60
request GET /v1/health/live
expect_status 200
query 'DELETE FROM saltern.schema_migrations WHERE version = 9999'
wait_until 180 is_ready || fail "the schema to fit again"

scenario "a schema of the next release is served, when that says that it can be"
query "INSERT INTO saltern.schema_migrations (version, name, checksum, oldest_program)
    VALUES (9999, 'from_the_next_release', sha256(''), 1)"
refused saltern migrate up
refused saltern migrate verify
sleep 1.2 # A node asks its database at most once a second.
request GET /v1/health/ready
expect_status 200
start_other_server "$work/second.log" SALTERN_LISTEN="127.0.0.1:$(free_port)"
stop_other_server
query 'DELETE FROM saltern.schema_migrations WHERE version = 9999'

scenario "a migration that was changed after it had been applied is noticed"
query "UPDATE saltern.schema_migrations SET checksum = sha256('another') WHERE version = 1"
refused saltern migrate verify
refused saltern migrate up

scenario "an older schema is refused by serve, which never migrates by itself"
query 'DELETE FROM saltern.schema_migrations WHERE version = (SELECT max(version) FROM saltern.schema_migrations)'
refused serve_elsewhere
wait_until 180 does_not_fit || fail "a schema that does not fit"
expect_problem 503 schema_mismatch
