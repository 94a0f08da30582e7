#!/usr/bin/env bash
# The database goes away and comes back: clients receive a retry time, no data is invented, and nothing needs a restart.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server

end_sessions() {
    superuser "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE usename = 'saltern_app' AND datname = '$own_database'" >/dev/null
}

register ada
create_item

scenario "connections that are cut are opened again, and nobody notices"
end_sessions
wait_until 180 on_every_loop item_is_read || fail "the item to be read again"
expect_json .body "$content"

scenario "without a database requests are answered 503, at once and with Retry-After"
superuser "ALTER DATABASE $own_database ALLOW_CONNECTIONS false"
end_sessions
away() { once=yes request GET /v1/health/ready && [[ $status == 503 ]]; }
wait_until 180 away || fail "the server to be unready"
expect_problem 503 database_unavailable
[[ $(header retry-after) =~ ^[1-9][0-9]*$ ]] || fail "a Retry-After"
once=yes request GET "/v1/items/$id"
expect_problem 503 database_unavailable
[[ $(header retry-after) =~ ^[1-9][0-9]*$ ]] || fail "a Retry-After"
once=yes request PUT "/v1/items/$(uuid)" "{\"format\":\"opaque\",\"body\":\"$content\"}" --header 'If-None-Match: *'
expect_problem 503 database_unavailable
kept=$token
token=
once=yes request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"}"
expect_problem 503 database_unavailable
token=$kept

scenario "what needs no database is answered as ever"
request GET /v1/health/live
expect_status 200
request GET /v1/service
expect_status 200
request POST /v1/kdf '{"password":"x"}'
expect_problem 422 password_refused

scenario "when it is back, so is the service"
superuser "ALTER DATABASE $own_database ALLOW_CONNECTIONS true"
wait_until 180 is_ready || fail "the server to be ready"
wait_until 180 on_every_loop item_is_read || fail "the item to be read"
expect_json .body "$content"
request GET /v1/account
expect_json .usage.items 1
