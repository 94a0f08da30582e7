#!/usr/bin/env bash
# The live stream: a device receives changes of other devices at once.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

listener=

# listen [CURL-ARGUMENT…]: opens the stream in the background; its events go to $work/events.
listen() {
    : >"$work/events"
    setpriv --pdeathsig TERM curl --silent --show-error --no-buffer --noproxy '*' --max-time 600 \
        --cacert "$certificate" --dump-header "$work/stream-headers" --header "Authorization: Bearer $token" "$@" \
        "$SALTERN_TEST_URL/v1/changes/stream" >"$work/events" 2>"$work/stream-errors" &
    listener=$!
}

# shellcheck disable=SC2317  # wait_until calls it
is_told() { grep --quiet --fixed-strings --line-regexp "$1" "$work/events"; }

# expect_told LINE: some time; the server's own bound, a second, is held by a test of its own.
expect_told() { wait_until 180 is_told "$1" || fail "the stream to tell $1, which told: $(cat "$work/events")"; }

# expect_ended: the stream ends as it should, with its last chunk.
expect_ended() {
    local result=0
    wait_until 180 is_gone "$listener" || fail "the stream to have ended"
    wait "$listener" || result=$?
    ((result == 0)) || fail "a proper end of the stream, not curl's $result: $(cat "$work/stream-errors")"
}

register ada
device=$token

scenario "the stream tells where the account is, and then every change that another device makes"
listen
expect_told 'data: {"revision":0}'
grep --quiet --ignore-case '^content-type: text/event-stream' "$work/stream-headers" || fail "an event stream"
log_in
item=/v1/items/$(uuid)
request PUT "$item" "{\"format\":\"aes-256-gcm\",\"body\":\"$(random_base64 60)\"}" --header 'If-None-Match: *'
expect_status 201
expect_told 'id: 1'
expect_told 'event: change'
expect_told 'data: {"revision":1}'
request DELETE "$item" '' --header 'If-Match: *'
expect_status 200
expect_told 'data: {"revision":2}'

scenario "the stream of a session that is ended ends"
request DELETE /v1/sessions
expect_status 200
expect_ended

scenario "a device that comes back is told at once what it does not know"
listen --header 'Last-Event-ID: 1'
expect_told 'data: {"revision":2}'
request DELETE /v1/sessions/current
expect_status 204
expect_ended

scenario "an ended session gets no stream"
token=$device
request GET /v1/changes/stream
expect_problem 401 unauthenticated
