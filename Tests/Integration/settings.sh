#!/usr/bin/env bash
# Settings take effect for clients: the same instance, served twice with different settings.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server
register ada
create_item
scenario "strangers are not told the version, unless that was decided"
request GET /v1/service
expect_json .version null
stop_own_server

start_own_server SALTERN_SERVICE_NAME='Notes of the sea' SALTERN_REGISTRATION=closed SALTERN_OPAQUE_FORMAT=off \
    SALTERN_KDF_MINIMUM_ITERATIONS=700000 SALTERN_SESSION_LIFETIME=10m SALTERN_SESSION_IDLE_TIMEOUT=5m \
    SALTERN_TLS_MINIMUM_VERSION=1.2 SALTERN_MAX_CONNECTIONS_PER_ADDRESS=4 SALTERN_LOG_LEVEL=error SALTERN_SHOW_VERSION=on

scenario "the service says what was decided"
request GET /v1/service
expect_json .name 'Notes of the sea'
expect_json .version "$(saltern version | cut --delimiter ' ' --fields 2)"
expect_json .registration closed
expect_json .kdf.minimumIterations 700000
expect_json .kdf.iterations 700000
expect_json '.formats | index("opaque")' null

scenario "registration can be closed"
kept=$token
token=
request POST /v1/accounts "{\"userid\":\"$(unique eve)\",\"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":700000}}"
expect_problem 403 registration_closed

scenario "a minimum that rises locks nobody out: it asks for an upgrade"
request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"}"
expect_status 201
expect_json .kdfUpgradeRequired true

scenario "a session ends when the administrator says"
expect_json '(.session.expiresAt | sub("\\.[0-9]+"; "") | fromdate) - now | . > 500 and . <= 600' true

scenario "without the format opaque, only known structures are stored, and what is there stays readable"
token=$kept
request PUT "/v1/items/$(uuid)" "{\"format\":\"opaque\",\"body\":\"$content\"}" --header 'If-None-Match: *'
expect_problem 422 unknown_format
request PUT "/v1/items/$(uuid)" "{\"format\":\"aes-256-gcm\",\"body\":\"$content\"}" --header 'If-None-Match: *'
expect_status 201
request GET "/v1/items/$id"
expect_json .body "$content"

scenario "TLS 1.2 can be let in, with AEAD suites only; 1.1 cannot"
# handshake ARGUMENT…: whether a handshake succeeds.
handshake() {
    openssl s_client -connect "127.0.0.1:$own_port" -servername localhost -CAfile "$certificate" -verify_return_error "$@" \
        </dev/null >/dev/null 2>&1
}
handshake -tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384 || fail "TLS 1.2 with an AEAD suite to be accepted"
if handshake -tls1_2 -cipher 'ECDHE-ECDSA-AES256-SHA:ECDHE-ECDSA-AES256-SHA384'; then fail "CBC suites to be refused"; fi
if handshake -tls1_1 -cipher 'ALL:@SECLEVEL=0'; then fail "TLS 1.1 to be refused"; fi
handshake -tls1_3 || fail "TLS 1.3 to be accepted"

scenario "one address cannot take all the connections"
refused() {
    ! curl --silent --noproxy '*' --max-time 180 --output /dev/null --cacert "$certificate" "$SALTERN_TEST_URL/v1/health/live"
}
# all_are_taken: opens four connections. The server closes them after ten seconds without a handshake.
all_are_taken() {
    local descriptor _
    for descriptor in 3 4 5 6; do
        eval "exec $descriptor<>/dev/tcp/127.0.0.1/$own_port"
    done
    # The server may not have accepted them yet.
    for _ in {1..20}; do
        ! refused || return 0
    done
    return 1
}
wait_until 180 all_are_taken || fail "the fifth connection to be closed"
for descriptor in 3 4 5 6; do
    eval "exec $descriptor>&-"
done
served() { ! refused; }
wait_until 180 served || fail "connections to be taken again"

scenario "the log has the level that was asked for"
if grep --quiet '"level":"info"' "$own_home/run.log"; then fail "no lines of the level info"; fi
