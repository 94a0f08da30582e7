#!/usr/bin/env bash
# SIGHUP changes the certificate during operation; SIGTERM lets requests finish.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# A connection that stays open: descriptor 7 writes to the server, and its replies are in $work/talk.
open_connection() {
    local pipe=$work/pipe
    rm -f -- "$pipe"
    mkfifo -- "$pipe"
    : >"$work/talk"
    openssl s_client -quiet -verify_quiet -no_ign_eof -servername localhost -CAfile "$certificate" \
        -connect "127.0.0.1:$own_port" <"$pipe" >"$work/talk" 2>"$work/talk-errors" &
    connection=$!
    exec 7>"$pipe"
}

# say LINE…: each ends with CR LF.
say_lines() { printf '%s\r\n' "$@" >&7; }

# has_said COUNT TEXT: whether the server has said TEXT on the open connection COUNT times.
has_said() { (($(grep --count --text --fixed-strings -- "$2" "$work/talk") == $1)); }

# accepts PIN: whether new connections show a key with this pin.
accepts() {
    curl --silent --noproxy '*' --max-time 180 --output /dev/null --cacert "$certificate" --pinnedpubkey "$1" \
        "$SALTERN_TEST_URL/v1/service"
}

start_ruler
start_own_server
register ada

scenario "a connection is kept alive"
open_connection
say_lines 'GET /v1/account HTTP/1.1' 'Host: localhost' "Authorization: Bearer $token" ''
wait_until 180 has_said 1 "$account_id" || fail "a reply: $(cat "$work/talk" "$work/talk-errors")"

scenario "SIGHUP after a rotation: the backup key is in use, and the old one is not"
active=$(saltern certificate pins | sed -n 's/^active *//p')
backup=$(saltern certificate pins | sed -n 's/^backup *//p')
accepts "$active" || fail "the active pin to be accepted"
saltern certificate rotate >"$work/rotated"
kill -HUP "$(own_server_process)"
wait_until 180 accepts "$backup" || fail "the backup pin to be accepted"
if accepts "$active"; then fail "the old pin to be refused"; fi
accepts "$active;$backup" || fail "a client that pins both to be served"

scenario "the service publishes the new pair"
request GET /v1/service
expect_json '.pins.active[0]' "$backup"
expect_json '.pins.backup[0]' "$(sed -n 's/^backup *//p' "$work/rotated")"

scenario "the connection from before is still served"
say_lines 'GET /v1/account HTTP/1.1' 'Host: localhost' "Authorization: Bearer $token" ''
wait_until 180 has_said 2 "$account_id" || fail "a second reply: $(cat "$work/talk" "$work/talk-errors")"

scenario "SIGHUP with files that cannot be used changes nothing"
cp -- "$certificate" "$work/good.pem"
printf 'not a certificate\n' >"$certificate"
kill -HUP "$(own_server_process)"
wait_until 180 grep --quiet certificate_not_reloaded "$own_home/run.log" || fail "the log to say so"
cp -- "$work/good.pem" "$certificate"
accepts "$backup" || fail "the server to go on as before"

scenario "a key file that others can read is refused"
chmod 0644 "$own_home/tls/key.pem"
refused=$(grep --count certificate_not_reloaded "$own_home/run.log")
kill -HUP "$(own_server_process)"
refused_again() { (($(grep --count certificate_not_reloaded "$own_home/run.log") > refused)); }
wait_until 180 refused_again || fail "the log to say so"
chmod 0600 "$own_home/tls/key.pem"
accepts "$backup" || fail "the server to go on as before"

# undisturbed COMMAND: the command fails where the server's time for a body is over before the rest of it comes. It is repeated
# if the machine was late meanwhile.
undisturbed() {
    local attempt begun
    for attempt in {1..5}; do
        begun=$(milliseconds)
        ! "$1" || return 0
        was_disturbed "$begun" || break
        exec 7>&-
        wait "$connection" || true
        stop_own_server || true
        start_own_server
        open_connection
    done
    fail "$expected: $(cat "$work/talk" "$work/talk-errors")"
}

scenario "SIGTERM lets a request finish that has begun, and takes no new ones"
payload="{\"format\":\"opaque\",\"body\":\"$(random_base64 300)\"}"
refuses() { ! accepts "$backup"; }
# expect_that SENTENCE COMMAND…: false with the sentence in expected when the command fails.
expect_that() {
    expected=$1
    "${@:2}"
}
# goes_on PROCESS: true if the server runs and waits for the body.
goes_on() { is_running "$1" && has_said 0 '408 Request Timeout'; }
# stop_during_put ITEM LENGTH: sends the head of a PUT, and then SIGTERM to the server, which waits for the body. Fills process.
stop_during_put() {
    say_lines "PUT /v1/items/$1 HTTP/1.1" 'Host: localhost' "Authorization: Bearer $token" 'If-None-Match: *' \
        'Content-Type: application/json' "Content-Length: $2" 'Expect: 100-continue' ''
    expect_that "the server to wait for the body" wait_until 180 has_said 1 '100 Continue' || return 1
    process=$(own_server_process)
    kill -TERM "$process"
    wait_until 180 grep --quiet server_stopping "$own_home/run.log" || fail "the log to say that the server stops"
}
finish_request() {
    local process
    id=$(uuid)
    stop_during_put "$id" "${#payload}" || return 1
    wait_until 180 refuses || fail "new connections to be refused"
    expect_that "the server to wait for the request" goes_on "$process" || return 1
    printf '%s' "$payload" >&7
    wait_until 180 has_ended_or_said "$process" '201 Created' || fail "an answer or an end"
    expect_that "the request to be answered" has_said 1 '201 Created' || return 1
    exec 7>&-
    wait_until 180 is_gone "$process" || fail "the server to have ended"
    wait "$connection" || true
    grep --quiet server_stopped "$own_home/run.log" || fail "the log to say that the server has stopped"
    wait_for_own_server 180 || true
}
# has_ended_or_said PROCESS TEXT
has_ended_or_said() { is_gone "$1" || has_said 1 "$2"; }
undisturbed finish_request

scenario "and what it answered is there"
start_own_server
request GET "/v1/items/$id"
expect_status 200
expect_json ".body" "$(jq --raw-output .body <<<"$payload")"

scenario "a second server on the same address is refused"
refused=0
saltern serve >"$work/second" 2>&1 || refused=$?
((refused == 1)) || fail "exit status 1, not $refused: $(cat "$work/second")"
grep --quiet 'Address already in use' "$work/second" || fail "the reason: $(cat "$work/second")"
request GET /v1/service
expect_status 200

scenario "a stranger's unfinished body does not hold up the stop"
end_stranger() {
    local process
    say_lines 'POST /v1/sessions HTTP/1.1' 'Host: localhost' 'Content-Type: application/json' 'Content-Length: 100' \
        'Expect: 100-continue' ''
    expect_that "the server to wait for the body" wait_until 180 has_said 1 '100 Continue' || return 1
    process=$(own_server_process)
    kill -TERM "$process"
    wait_until 180 is_gone "$process" || fail "the server to have ended"
    # It waits for a body that does not come for ten seconds, and for a request for thirty.
    expect_that "the server to reject the request as it stops" has_said 1 '503 Service Unavailable' || return 1
    expect_that "the server to have ended within 15 s" \
        is_within 15000 "$(time_of_event server_stopping)" "$(time_of_event server_stopped)" || return 1
    exec 7>&-
    wait "$connection" || true
    wait_for_own_server 180 || true
}
open_connection
undisturbed end_stranger

scenario "a second signal ends the server at once"
end_at_once() {
    local process
    stop_during_put "$(uuid)" 200000 || return 1
    wait_until 180 refuses || fail "new connections to be refused"
    expect_that "the server to wait for the request" goes_on "$process" || return 1
    kill -TERM "$process"
    wait_until 180 is_gone "$process" || fail "the server to have ended"
    # A server that waits for the request rejects it after ten seconds, and logs its end.
    expect_that "the server to end without an answer" has_said 0 'HTTP/1.1 4' || return 1
    if grep --quiet server_stopped "$own_home/run.log"; then fail "an end without a stop"; fi
    exec 7>&-
    wait "$connection" || true
    wait_for_own_server 180 || true
}
start_own_server
register bob
open_connection
undisturbed end_at_once

scenario "a signal counts while the server starts"
setpriv --pdeathsig TERM python3 -c 'import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
asked = listener.accept()[0]
asked.recv(1)
print("asked", flush=True)
time.sleep(3600)' >"$work/silent" &
silent=$!
wait_until 180 test -s "$work/silent" || fail "a database that never answers"
begin_other_server "$work/starting" SALTERN_DATABASE_URL="postgresql://127.0.0.1:$(<"$work/silent")/saltern"
wait_until 180 grep --quiet asked "$work/silent" || fail "the server to ask the database: $(cat "$work/starting")"
[[ /proc/$other_pid/exe -ef $executable ]] || fail "it to be the server, not a shell that waits for it: $(cat "$work/starting")"
is_running "$other_pid" || fail "the server to try: $(cat "$work/starting")"
kill -TERM "$other_pid"
wait_until 180 is_gone "$other_pid" || fail "the server to have ended"
kill "$silent"
wait "$silent" || true
