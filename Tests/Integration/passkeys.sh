#!/usr/bin/env bash
# Passkeys with soft-webauthn, an authenticator that is not ours: as a second factor, to log in without password, and in the
# place of the password key. The browser code of docs/passkeys.md in Chromium. And what two servers do with the answer to one
# challenge.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/packages.sh
source "$repository/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_packages "${browser_packages[@]}"
ensure_python_tools
origin=https://localhost
page_port=$(free_port)
passkeys=(
    SALTERN_PASSKEYS_RP_ID=localhost "SALTERN_PASSKEYS_ORIGINS=$origin,http://localhost:$page_port" SALTERN_RATE_LIMITS=off
)
start_own_server "${passkeys[@]}"

# authenticator create|get NAME [ORIGIN] [--verified]: answers the options of the last reply.
authenticator() {
    local ceremony=$1 name=$2
    shift 2
    jq .publicKey <<<"$body" | PYTHONDONTWRITEBYTECODE=1 "$repository/.venv/bin/python" \
        "$repository/Tests/Integration/authenticator.py" "$ceremony" "$work/$name.passkey" "${@:-$origin}"
}

# add_passkey NAME LOGS-IN [--verified]
add_passkey() {
    local credential
    request POST /v1/account/passkeys "$(proof "\"logsIn\":$2")"
    expect_status 201
    credential=$(authenticator create "$1" "$origin" "${@:3}")
    request POST /v1/account/passkeys/confirm "$(proof "\"name\":\"$1\",\"logsIn\":$2,\"credential\":$credential")"
    expect_status 201
}

scenario "a passkey is added, and log-ins with the password key need it"
register ada
try_log_in
expect_status 201
add_passkey phone false
expect_json .algorithm -7
expect_json .deviceBound true
request GET /v1/account/passkeys
expect_json '.passkeys | length' 1
try_log_in
expect_problem 401 second_factor_required
expect_json '.factors | join(" ")' passkey
answer=$(authenticator get phone)
try_log_in "\"passkey\":$answer"
expect_status 201
try_log_in "\"passkey\":$answer"
expect_problem 401 wrong_passkey

scenario "an answer to another page opens nothing"
try_log_in
try_log_in "\"passkey\":$(authenticator get phone https://localhost.example.org)"
expect_problem 401 wrong_passkey

scenario "a passkey opens a session without userid and password when it has verified its user"
add_passkey laptop true --verified
token=
request POST /v1/passkeys/options
expect_status 201
request POST /v1/passkeys/sessions "{\"credential\":$(authenticator get laptop)}"
expect_problem 401 wrong_passkey
request POST /v1/passkeys/options
request POST /v1/passkeys/sessions "{\"credential\":$(authenticator get laptop "$origin" --verified)}"
expect_status 201
expect_json .accountId "$account_id"
token=$(json .session.token)
request GET /v1/account
expect_status 200

scenario "an assertion for one request replaces the password key"
digest=$(printf '{}' | openssl dgst -sha256 -binary | openssl base64)
for name in laptop phone; do
    request POST /v1/account/passkeys/options "{\"purpose\":\"exportAccount\",\"bodySHA256\":\"$digest\"}"
    expect_status 201
    answer=$(authenticator get "$name" "$origin" --verified | openssl base64 -A | tr '+/' '-_' | tr -d =)
    request POST /v1/account/export '{}' --header "Passkey-Assertion: $answer"
    # The phone does not log in, so it does not replace the password key either.
    if [[ $name == phone ]]; then expect_problem 403 wrong_passkey; else expect_status 200; fi
done

scenario "an output of PRF is refused, and is nowhere in the log"
request POST /v1/passkeys/options
answer=$(authenticator get laptop "$origin" --verified)
answer=$(jq --compact-output '.clientExtensionResults.prf.results.first = "c2VjcmV0LW91dHB1dA"' <<<"$answer")
request POST /v1/passkeys/sessions "{\"credential\":$answer}"
expect_problem 422 prf_output_refused
if grep --quiet c2VjcmV0LW91dHB1dA "$own_home/run.log"; then fail "the output not to be logged"; fi

scenario "of two servers that get the answer to one challenge one opens a session, sixty times"
port=$(free_port)
start_other_server "$work/other" SALTERN_LISTEN="127.0.0.1:$port"

# send_answer PORT NAME: sends the answer to one server, and notes status, headers, body and curl's exit status.
send_answer() {
    local result=0
    : >"$work/headers-$2"
    : >"$work/body-$2"
    curl --silent --show-error --noproxy '*' --max-time 180 --cacert "$certificate" --dump-header "$work/headers-$2" \
        --output "$work/body-$2" --write-out '%{http_code}\n' --header 'Content-Type: application/json' \
        --data-binary "@$work/answer" "https://localhost:$1/v1/passkeys/sessions" >"$work/status-$2" || result=$?
    echo "$result" >"$work/result-$2"
}

# answer_passes NAME: true if a server could have judged the answer but for a slow machine.
answer_passes() {
    status=$(<"$work/status-$1")
    headers=$(tr -d '\r' <"$work/headers-$1")
    body=$(<"$work/body-$1")
    request_result=$(<"$work/result-$1")
    failure_passes
}
token=
round=1
while ((round <= 60)); do
    request POST /v1/passkeys/options
    printf '{"credential":%s}' "$(authenticator get laptop "$origin" --verified)" >"$work/answer"
    request_begun=$SECONDS
    send_answer "$own_port" one &
    one=$!
    send_answer "$port" two
    wait "$one"
    # A session may have been opened without its reply: such a round shows nothing.
    if answer_passes one || answer_passes two; then
        ((++repetitions <= 40)) || fail "servers that reply within their limits of time"
        say "repeated after status $(<"$work/status-one") and $(<"$work/status-two"): round $round"
        sleep 1
        continue
    fi
    statuses=$(sort "$work/status-one" "$work/status-two" | paste --serial --delimiters ' ')
    [[ $statuses == "201 401" ]] || fail "one session, not $statuses"
    ((++round))
done
stop_other_server

scenario "an admin removes the passkeys of somebody who has lost them"
saltern account remove-second-factor "$userid" >"$work/removed"
grep --quiet phone "$work/removed" || fail "the passkeys to be named: $(cat "$work/removed")"
try_log_in
expect_status 201

scenario "the browser code of docs/passkeys.md in Chromium"
register bea
SALTERN_TEST_URL=$SALTERN_TEST_URL SALTERN_TEST_CERTIFICATE=$certificate SALTERN_TEST_PAGE_PORT=$page_port \
    SALTERN_TEST_ID=$account_id SALTERN_TEST_USERID=$userid SALTERN_TEST_KEY=$password_key SALTERN_TEST_TOKEN=$token \
    "$repository/.venv/bin/python" "$repository/Tests/Browser/passkeys_page.py"

scenario "the removal of a passkey ends the sessions that it has opened"
register cleo
add_passkey tablet true --verified
owner=$token
token=
request POST /v1/passkeys/options
request POST /v1/passkeys/sessions "{\"credential\":$(authenticator get tablet "$origin" --verified)}"
thief=$(json .session.token)
token=$owner
request GET /v1/account/passkeys
request DELETE "/v1/account/passkeys/$(json '.passkeys[0].id')" "$(proof)"
expect_status 204
token=$thief
request GET /v1/account
expect_status 401
