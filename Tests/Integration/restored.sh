#!/usr/bin/env bash
# What an operator says by hand when the database has gone back, and a database whose restore is not finished.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server
register ada
create_item
answered() { request GET "/v1/items/$id" && [[ $status == 200 ]]; }

scenario "what the server cannot notice is told by hand: every device lists everything once"
request GET /v1/changes
cursor=$(json .cursor)
said=$(saltern restored)
base=${said##* }
[[ $said == "revisions go on above $base" ]] || fail "the base, not: $said"
request GET "/v1/changes?since=$cursor"
expect_problem 410 cursor_expired
request GET /v1/changes
expect_json .revisionBase "$base"
grep --quiet database_restored <<<"$(saltern audit list)" || fail "the audit log to have it"

scenario "and all sessions end"
said=$(saltern restored --end-sessions)
[[ $said == *"1 sessions have ended"* ]] || fail "the session to end: $said"
request GET /v1/account
expect_problem 401 unauthenticated
log_in
answered || fail "the item to be there"

scenario "a server that runs does not use a database that is being restored, and goes on by itself when it has come back"
away() { request GET /v1/health/ready && [[ $status == 503 ]]; }
query 'CREATE SCHEMA saltern_restoring'
wait_until 180 away || fail "the server not to be ready"
expect_problem 503 database_unavailable
for _ in {1..5}; do
    request GET "/v1/items/$id"
    expect_problem 503 database_unavailable
done
grep --quiet 'a restore of the database is not finished' "$own_home/run.log" || fail "the log to say why"
query 'DROP SCHEMA saltern_restoring'
wait_until 180 on_every_loop answered || fail "the item to be there"
