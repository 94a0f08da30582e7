#!/usr/bin/env bash
# Known secrets go through every route, in good requests and in bad ones. Then the server's log, its errors, its metrics and
# a dump of the database are searched for them.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

metrics=127.0.0.1:$(free_port)
start_own_server SALTERN_LOG_LEVEL=debug SALTERN_METRICS_LISTEN="$metrics"

# Every text to look for, a line each, by what it is.
declare -A secret
remember() { secret[$1]=$2; }

# send …: a request, whose body is kept when it is an error.
send() {
    request "$@"
    ((status < 400)) || printf '%s\n' "$body" >>"$work/errors"
}

base64_to_hex() { openssl base64 -d -A <<<"$1" | hex; }
url_base64_to_hex() { tr '_-' '/+' <<<"$1" | openssl base64 -d -A | hex; }

scenario "secrets go through every route"
plaintext="canary-$(openssl rand -hex 8) in the clear"
password="canary-$(openssl rand -hex 8)"
userid=$(unique canary)
device="canary-$(openssl rand -hex 8)"
password_key=$(stretch "$password" "localhost.saltern:$userid")
keyring=$(random_base64 120)
title=$(random_base64 45)
body_bytes=$(random_base64 120)
id=$(uuid)

credentials="\"userid\":\"$userid\",\"passwordKey\":\"$password_key\",\"device\":{\"name\":\"$device\"}"
send POST /v1/kdf "{\"userid\":\"$userid\"}"
send POST /v1/accounts "{$credentials,\"kdf\":{\"iterations\":600000},\"keyring\":\"$keyring\"}"
expect_status 201
account_id=$(json .accountId)
token=$(json .session.token)
remember "the first token" "$token"
send POST /v1/accounts "{$credentials,\"kdf\":{\"iterations\":600000},\"keyring\":\"$keyring\"}"
expect_status 409
send POST /v1/kdf "{\"userid\":\"$userid\"}"
send POST /v1/sessions "{$credentials}"
expect_status 201
token=$(json .session.token)
session=$(json .session.id)
send GET /v1/service
send GET /v1/health/live
send GET /v1/health/ready
send GET /v1/account
send GET /v1/sessions
content="\"format\":\"opaque\",\"title\":\"$title\",\"body\":\"$body_bytes\""
send PUT "/v1/items/$id" "{$content}" --header 'If-None-Match: *'
expect_status 201
send GET "/v1/items/$id"
send GET "/v1/items?limit=1"

scenario "and into every kind of refusal"
unencrypted=$(printf '%s' "$plaintext" | openssl base64 -A)
send POST /v1/sessions "{\"userid\":\"$userid\",\"password\":\"$password\"}"
expect_problem 422 password_refused
send POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password\"}"
expect_problem 422 not_a_stretched_key
send POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$(random_base64 32)\"}"
expect_problem 401 wrong_credentials
send POST /v1/sessions "{$credentials,\"more\":\"$password_key\"}"
expect_problem 422 unknown_member
send POST /v1/sessions "{$credentials"
expect_problem 400 malformed_json
send POST /v1/kdf "{\"userid\":\"$userid\u0000\"}"
expect_problem 422 invalid_userid
send GET "/v1/account?token=$token"
expect_problem 400 unknown_parameter
send GET "/v1/items/$password_key"
send GET "/v1/$token"
expect_problem 404 not_found
send "${userid^^}" /v1/kdf
send PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$unencrypted\"}" --header 'If-Match: *'
expect_problem 422 not_encrypted
send PUT "/v1/items/$id" "{\"format\":\"$plaintext\",\"body\":\"$body_bytes\"}" --header 'If-Match: *'
expect_problem 422 unknown_format
send PUT "/v1/items/$id" "{\"format\":\"opaque\",\"collection\":\"$plaintext\",\"body\":\"$body_bytes\"}" --header 'If-Match: *'
expect_problem 422 invalid_collection
send PUT "/v1/items/$id" "{$content}" --header "If-Match: $plaintext"
expect_problem 400 malformed_precondition
send GET /v1/account '' --header "Cookie: $password" --header "User-Agent: $plaintext" --header "X-Forwarded-For: $device"
expect_status 200
good=$token
token=${token%?????}AAAAA
send GET /v1/account
expect_problem 401 unauthenticated
remember "a token that is not valid" "$token"
token=$good
send DELETE /v1/sessions
send DELETE "/v1/sessions/$session"
expect_status 204
remember "the second token" "$token"
send DELETE /v1/sessions/current
expect_problem 401 unauthenticated
token=
send POST /v1/sessions "{$credentials}"
token=$(json .session.token)
send DELETE "/v1/items/$id" '' --header 'If-Match: *'
send PUT "/v1/items/$id" "{$content}" --header 'If-None-Match: *'
expect_status 201

remember "the password" "$password"
remember "the plaintext" "$plaintext"
remember "the plaintext in base64" "$unencrypted"
remember "the plaintext in hexadecimal" "$(printf '%s' "$plaintext" | hex)"
remember "the password key" "$password_key"
remember "the password key in hexadecimal" "$(base64_to_hex "$password_key")"
remember "the third token" "$token"
remember "the third token's secret in hexadecimal" "$(url_base64_to_hex "${token#slt_}" | tail --bytes +33)"

# search FILE WHAT: none of the secrets is in it.
search() {
    local name
    [[ -s $1 ]] || fail "$2 not to be empty"
    for name in "${!secret[@]}"; do
        if grep --quiet --text --ignore-case --fixed-strings -e "${secret[$name]}" "$1"; then
            fail "$2 without $name: $(grep --text --ignore-case --fixed-strings -e "${secret[$name]}" "$1" | head -n 3)"
        fi
    done
}

scenario "the dump of the database has no password, no password key, no token and no plaintext"
(
    # shellcheck source=/dev/null
    source "$own_home/run.env"
    pg_dump "$SALTERN_OWNER_DATABASE_URL"
) >"$work/dump"
verifier=$(openssl base64 -d -A <<<"$password_key" | openssl dgst -sha256 -binary | openssl base64)
search "$work/dump" "the dump"
# The search finds what is there: the verifier and the sealed bytes, in PostgreSQL's hexadecimal.
for known in "$verifier" "$keyring" "$title" "$body_bytes"; do
    grep --quiet --fixed-strings "$(base64_to_hex "$known")" "$work/dump" || fail "the dump to have $known"
done
grep --quiet --fixed-strings "$userid" "$work/dump" || fail "the dump to have the userid"

remember "the verifier" "$verifier"
remember "the verifier in hexadecimal" "$(base64_to_hex "$verifier")"
remember "the device's name" "$device"
remember "the userid" "$userid"

scenario "no error says anything back that is secret"
(($(wc -l <"$work/errors") >= 15)) || fail "at least 15 errors"
search "$work/errors" "the errors"

remember "the keyring" "$keyring"
remember "the sealed title" "$title"
remember "the sealed body" "$body_bytes"
remember "the keyring in hexadecimal" "$(base64_to_hex "$keyring")"
remember "the sealed title in hexadecimal" "$(base64_to_hex "$title")"
remember "the sealed body in hexadecimal" "$(base64_to_hex "$body_bytes")"
remember "the item's id" "$id"
remember "the session's id" "$session"

scenario "the metrics count routes and name nobody"
curl --silent --show-error --noproxy '*' "http://$metrics/metrics" >"$work/metrics"
grep --quiet --fixed-strings 'route="PUT /v1/items/{id}"' "$work/metrics" || fail "the route's template in the metrics"
search "$work/metrics" "the metrics"
if grep --quiet --fixed-strings "$account_id" "$work/metrics"; then fail "no account in the metrics"; fi

scenario "the log names requests, routes and accounts, and nothing that was sent"
stop_own_server || fail "the server to end cleanly"
grep --quiet --fixed-strings "$account_id" "$own_home/run.log" || fail "the account's id in the log"
grep '^{' "$own_home/run.log" | jq --exit-status --slurp 'all(.time and .level and .event)' >/dev/null || fail "JSON lines"
# What scripts/run says to the newcomer is not the server's.
grep '^{' "$own_home/run.log" >"$work/log"
search "$work/log" "the log"

scenario "nor does the log of PostgreSQL"
search "$own_home/postgres.log" "PostgreSQL's log"
