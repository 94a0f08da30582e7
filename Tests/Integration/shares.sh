#!/usr/bin/env bash
# Shares: sealed in Python, behind a link of the server, opened in Python; views, ends, limits, and what others can learn.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools
# Misses are counted by address, and this scenario has many.
start_own_server SALTERN_ANONYMOUS_SHARES=on SALTERN_RATE_LIMITS=share-miss=500/0.01

sealer() { "$repository/.venv/bin/python" "$repository/Tests/Integration/shares.py" "$@"; }

passphrase=correct-horse

# send_share TEXT [NAME=VALUE]…: asks for a share of a text with what the token allows.
send_share() {
    local text=$1
    shift
    content=$(sealer seal aes-256-gcm "$passphrase" "$text" "$@")
    request POST /v1/shares "$content"
}

# share TEXT [NAME=VALUE]…: shares a text; fills id, path and manage.
share() {
    send_share "$@"
    take_share
}

# take_share: fills them from the reply to send_share.
take_share() {
    expect_status 201
    id=$(json .id)
    path=/v1/shares/$id
    manage=$(json .manageToken)
}

# as TOKEN METHOD PATH [BODY]: a request with another token, or with none.
as() {
    local own=$token
    token=$1
    shift
    request "$@"
    token=$own
}

# fetch_at_once COUNT PATH [OPTION…]: as many at the same time; how many replies had which status, as in "97 404 3 200".
fetch_at_once() {
    local count=$1 index
    for ((index = 0; index < count; index++)); do
        printf 'url = "%s%s"\noutput = "/dev/null"\n' "$SALTERN_TEST_URL" "$2"
    done >"$work/urls"
    curl --no-progress-meter --noproxy '*' --max-time 180 --cacert "$certificate" --parallel --parallel-immediate \
        --parallel-max "$count" --write-out '%{http_code}\n' --config "$work/urls" "${@:3}" |
        sort | uniq --count | awk '{ printf "%s%s %s", separator, $1, $2; separator = " " }'
}

register ada
ada_key=$password_key

scenario "whoever has the link and the passphrase reads what was shared, without an account"
share 'The door code is 4711.'
expect_json .path "/s/$id"
expect_json .views 0
[[ $id =~ ^[0-9A-Za-z]{22}$ && $manage =~ ^slm_[0-9A-Za-z_-]{43}$ ]] || fail "an id and a manage token"
as '' GET "$path"
expect_status 200
expect_header cache-control 'no-store, no-transform'
[[ $(sealer open "$passphrase" <<<"$body") == 'The door code is 4711.' ]] || fail "the text"
if sealer open wrong <<<"$body" 2>/dev/null; then fail "another passphrase to open nothing"; fi

scenario "so do clients from before: a nonce of 16 bytes, a salt of 8, 1,000 iterations, padding inside of GCM"
request POST /v1/shares "$(sealer legacy abcdefghijkl 'An old note, twelve letters of passphrase.')"
expect_status 201
as '' GET "/v1/shares/$(json .id)"
expect_status 200
[[ $(sealer open abcdefghijkl <<<"$body") == 'An old note, twelve letters of passphrase.' ]] || fail "the text"

scenario "my shares, the newest first, and what my plan counts"
request GET /v1/shares
expect_status 200
expect_json '.shares | length' 2
expect_json '.shares[1].id' "$id"
expect_json '.shares[1].views' 1
expect_json '[.shares[] | has("sealed") or has("manageToken")] | any' false
request GET '/v1/shares?limit=1'
expect_json '.shares | length' 1
request GET "/v1/shares?limit=1&page=$(json .nextPage)"
expect_json '.shares[0].id' "$id"
expect_json '.nextPage' null
request GET /v1/account
expect_json .usage.shares 2

scenario "the manage token puts something else behind the link"
as "$manage" PUT "$path" "$(sealer seal aes-256-gcm-iv16 "$passphrase" 'It is 4712 now.' maxViews=2)"
expect_status 200
expect_json .views 0
as '' GET "$path"
expect_json .viewsLeft 1
[[ $(sealer open "$passphrase" <<<"$body") == 'It is 4712 now.' ]] || fail "the new text"

scenario "HEAD and prefetches cost no view"
for ((index = 0; index < 5; index++)); do
    as '' HEAD "$path" '' --head
    expect_status 200
    expect_header saltern-views-left 1
    [[ -z $(header content-length) ]] || fail "no length that a GET would not have"
done
as '' GET "$path" '' --header 'Sec-Purpose: prefetch;prerender'
expect_problem 403 prefetch_refused

scenario "the last view takes the payload with it, from the database too"
as '' GET "$path"
expect_status 200
expect_json .viewsLeft 0
as '' GET "$path"
expect_problem 404 not_found
[[ $(query 'SELECT count(*) FROM saltern.shares') == 1 ]] || fail "one share that is left"

# Not more than may wait for one share. A client that receives a retry time, because earlier requests took too long, retries.
scenario "sixty who fetch at once get exactly three views of three"
share 'Three may read this.' maxViews=3
[[ $(fetch_at_once 60 "$path" --retry 30) == "3 200 57 404" ]] || fail "3 views and 57 misses: $(fetch_at_once 1 "$path")"
as '' HEAD "$path" '' --head
expect_status 404

scenario "a share ends when it was told to, and a purge removes it"
# On a slow machine the time may have passed before the request arrives.
shares_in_time() {
    send_share 'Soon gone.' "expiresAt=\"$(date --utc --date '+10 seconds' +%Y-%m-%dT%H:%M:%SZ)\""
    [[ $status != 422 || $(json .code) != time_has_passed ]]
}
wait_until 180 shares_in_time || fail "a share that has not ended yet"
take_share
has_ended() {
    as '' HEAD "$path" '' --head
    [[ $status == 404 ]]
}
wait_until 180 has_ended || fail "the share to end"
saltern purge --json | jq --exit-status '.shares >= 1' >/dev/null || fail "one share to be purged"
as "$manage" PUT "$path" "$content"
expect_problem 404 not_found
as "$manage" DELETE "$path"
expect_problem 404 not_found

scenario "a link can be taken back, once"
share 'Not for you after all.'
as "$manage" DELETE "$path"
expect_status 204
as "$manage" DELETE "$path"
expect_problem 404 not_found
as '' GET "$path"
expect_problem 404 not_found

scenario "a wrong token, another account and an id that leads nowhere learn the same: nothing"
share 'Mine.' maxViews=9
mine=$path
share 'Mine too.'
expected=
ada=$token
register bob
bob=$token
token=$ada
for path in "$mine" /v1/shares/0000000000000000000000 /v1/shares/x; do
    for other in "$manage" "$bob"; do
        as "$other" PUT "$path" "$content"
        [[ -n $expected ]] || expected=$(json 'del(.requestId) | tostring')
        expect_json 'del(.requestId) | tostring' "$expected"
        as "$other" DELETE "$path"
        expect_json 'del(.requestId) | tostring' "$expected"
    done
    as '' DELETE "$path"
    expect_problem 401 unauthenticated
done
as '' GET /v1/shares/0000000000000000000000
expect_json 'del(.requestId) | tostring' "$expected"
as '' HEAD "$mine" '' --head
expect_header saltern-views-left 9

scenario "where the operator allows it, anybody shares a little for a little while"
week=$(date --utc --date '+6 days' +%Y-%m-%dT%H:%M:%SZ)
token=
share 'From nobody.' "expiresAt=\"$week\""
request GET "$path"
expect_status 200
request POST /v1/shares "$(sealer seal aes-256-gcm "$passphrase" 'For ever.')"
expect_problem 422 expiry_needed
request POST /v1/shares "$(sealer seal aes-256-gcm "$passphrase" "$(printf '%065537d' 0)" "expiresAt=\"$week\"")"
expect_problem 422 too_long
head --bytes 98305 /dev/zero | tr '\0' ' ' >"$work/large"
request POST /v1/shares '' --header 'Content-Type: application/json' --data-binary "@$work/large"
expect_problem 413 body_too_large
as "$manage" DELETE "$path"
expect_status 204

scenario "whoever walks through ids is stopped, and then learns nothing of any share"
for ((attempt = 0; attempt < 20; attempt++)); do
    fetch_at_once 60 /v1/shares/0000000000000000000000 >"$work/statuses"
    ! grep --quiet ' 429' "$work/statuses" || break
done
grep --quiet ' 429' "$work/statuses" || fail "the walk to be stopped"
# Every 100 s one request is allowed again: the misses use it up.
is_stopped() {
    fetch_at_once 60 /v1/shares/0000000000000000000000 >"$work/statuses"
    request GET "$mine"
    [[ $status == 429 ]]
}
wait_until 600 is_stopped || fail "nothing of a share to be learned"
expect_problem 429 rate_limited
[[ -n $(header retry-after) ]] || fail "Retry-After"

scenario "an account takes its shares along"
token=$ada
request DELETE /v1/account "{\"currentPasswordKey\":\"$ada_key\"}"
expect_status 204
[[ $(query 'SELECT (SELECT count(*) FROM saltern.shares) + (SELECT count(*) FROM saltern.account_shares)') == 0 ]] || fail "no share to be left"
