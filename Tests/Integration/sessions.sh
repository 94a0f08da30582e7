#!/usr/bin/env bash
# Sessions: list them, end one, all others, or the current one; ended sessions are rejected.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# log_in_as DEVICE: a new session of the account.
log_in_as() {
    token=
    request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\",\"device\":{\"name\":\"$1\"}}"
    expect_status 201
    token=$(json .session.token)
    session=$(json .session.id)
}

# expect_no_session TOKEN: nothing can be done with it.
expect_no_session() {
    local kept=$token
    token=$1
    request GET /v1/account
    expect_problem 401 unauthenticated
    expect_header www-authenticate Bearer
    token=$kept
}

register ada
first=$token

scenario "every session is listed, with its device, and the one that asks is marked"
log_in_as "Ada's tablet"
tablet=$token
tablet_session=$session
log_in_as 'Büro'
request GET /v1/sessions
expect_status 200
expect_json '.sessions | length' 3
expect_json "[.sessions[] | select(.current)] | length" 1
expect_json ".sessions[] | select(.current) | .id" "$session"
expect_json ".sessions[] | select(.current) | .device.name" 'Büro'
expect_json ".sessions[] | select(.id == \"$tablet_session\") | .device.name" "Ada's tablet"
expect_json '[.sessions[] | select(has("token"))] | length' 0

scenario "one session is ended by its id, and at once"
request DELETE "/v1/sessions/$tablet_session"
expect_status 204
expect_no_session "$tablet"
request DELETE "/v1/sessions/$tablet_session"
expect_problem 404 not_found

scenario "nobody ends the sessions of somebody else"
ada=$token
log_in_as 'phone'
phone=$token
phone_session=$session
ada_userid=$userid
ada_key=$password_key
register eve
request DELETE "/v1/sessions/$phone_session"
expect_problem 404 not_found
eve=$token
token=$phone
request GET /v1/account
expect_status 200

scenario "all others are ended in one go, and nobody else's"
token=$ada
request DELETE /v1/sessions
expect_status 200
expect_json .ended 2
expect_no_session "$first"
expect_no_session "$phone"
request GET /v1/sessions
expect_json '.sessions | length' 1
token=$eve
request GET /v1/account
expect_status 200

scenario "logging out ends the session that asks"
token=$ada
request DELETE /v1/sessions/current
expect_status 204
expect_no_session "$ada"

scenario "the password opens a new one"
userid=$ada_userid
password_key=$ada_key
log_in_as 'phone'
request GET /v1/sessions
expect_json '.sessions | length' 1

scenario "a token that is malformed, unknown, of somebody else's account or in the wrong place is the same 401"
good=$token
last=${good: -1}
expect_no_session "${good%?}$([[ $last == A ]] && printf E || printf A)"
expect_no_session "${good:0:20}"
expect_no_session "slt_$(openssl rand -base64 48 | tr '+/' '-_')"
expect_no_session "${eve:0:25}${good:25}"
expect_no_session "$good$good"
token=
request GET /v1/account '' --header "Authorization: Basic $good"
expect_problem 401 unauthenticated
request GET /v1/account '' --header "Cookie: token=$good"
expect_problem 401 unauthenticated
request GET "/v1/account?access_token=$good"
expect_problem 400 unknown_parameter
request GET /v1/account '' --header "Authorization: Bearer $good" --header "Authorization: Bearer $good"
expect_problem 401 unauthenticated
request GET /v1/account '' --header "authorization: bearer $good"
expect_status 200

scenario "every route that works on an account wants a session"
for line in 'GET /v1/account' 'GET /v1/sessions' 'DELETE /v1/sessions' 'DELETE /v1/sessions/current' \
    "DELETE /v1/sessions/$(uuid)" 'GET /v1/items' "GET /v1/items/$(uuid)" "DELETE /v1/items/$(uuid)"; do
    request "${line% *}" "${line#* }"
    expect_problem 401 unauthenticated
done
request PUT "/v1/items/$(uuid)" '{"format":"opaque","body":"AAAA"}' --header 'If-None-Match: *'
expect_problem 401 unauthenticated
