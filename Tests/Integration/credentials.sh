#!/usr/bin/env bash
# A user changes password and userid, exports everything, and deletes the account.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# stretched PASSWORD [ITERATIONS]: the key of the current userid.
stretched() { stretch "$1" "localhost.saltern:$userid" "${2:-600000}"; }

scenario "a keyring is sealed anew together with a new password"
register ada 'the old password'
first=$token
keyring=$(random_base64 120)
request PUT /v1/account/keyring "{\"keyring\":\"$keyring\"}" --header 'If-None-Match: *'
expect_status 201
expect_header etag '"1"'
request GET /v1/account/keyring '' --header 'If-None-Match: "1"'
expect_status 304
log_in
phone=$token
token=$first
old_key=$password_key
new_key=$(stretched 'the new password')
keyring=$(random_base64 120)
change="{\"currentPasswordKey\":\"$old_key\",\"passwordKey\":\"$new_key\",\"kdf\":{\"iterations\":600000},
    \"keyring\":\"$keyring\",\"keyringRevision\":1}"
request PUT /v1/account/credential "${change/,\"keyringRevision\":1/}"
expect_problem 428 keyring_required
expect_json .revision 1
request PUT /v1/account/credential "${change/\"keyringRevision\":1/\"keyringRevision\":7}"
expect_problem 409 keyring_changed
request PUT /v1/account/credential "$change"
expect_status 200
expect_json .sessionsEnded 1
expect_json .currentSessionEnded false
expect_json .keyringRevision 2

scenario "the same request again, because the reply was lost, is a success"
request PUT /v1/account/credential "$change"
expect_status 200
expect_json .sessionsEnded 0
expect_json .keyringRevision 2

scenario "the other devices are logged out, and only the new password logs in"
token=$phone
request GET /v1/account
expect_problem 401 unauthenticated
token=
request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$old_key\"}"
expect_problem 401 wrong_credentials
log_in "$userid" "$new_key"
expect_json .keyring "$keyring"
expect_json .keyringRevision 2

scenario "iterations rise, and never fall"
more=$(stretched 'the new password' 650000)
request PUT /v1/account/credential \
    "{\"currentPasswordKey\":\"$password_key\",\"passwordKey\":\"$more\",\"kdf\":{\"iterations\":650000},
    \"keyring\":\"$keyring\",\"keyringRevision\":2}"
expect_status 200
expect_json .kdf.iterations 650000
password_key=$more
request POST /v1/kdf "{\"userid\":\"$userid\"}"
expect_json .iterations 650000
request PUT /v1/account/credential \
    "{\"currentPasswordKey\":\"$password_key\",\"passwordKey\":\"$new_key\",\"kdf\":{\"iterations\":600000}}"
expect_problem 422 iterations_lowered
expect_json .limit 650000

scenario "a wrong present key changes nothing"
request PUT /v1/account/credential \
    "{\"currentPasswordKey\":\"$(random_base64 32)\",\"passwordKey\":\"$new_key\",\"kdf\":{\"iterations\":650000}}"
expect_problem 403 wrong_credentials

scenario "another userid is another salt and another key, and the old one is free"
old_userid=$userid
userid=$(unique lovelace)
new_key=$(stretched 'the new password' 650000)
request PUT /v1/account/userid "{\"currentPasswordKey\":\"$password_key\",\"userid\":\"$userid\",
    \"passwordKey\":\"$new_key\",\"kdf\":{\"iterations\":650000},\"keyring\":\"$keyring\",\"keyringRevision\":2}"
expect_status 200
expect_json .userid "$userid"
log_in "$userid" "$new_key"
request GET /v1/account
expect_json .userid "$userid"
lovelace=$token
token=
request POST /v1/accounts \
    "{\"userid\":\"$old_userid\",\"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":600000}}"
expect_status 201
token=$lovelace
request PUT /v1/account/userid "{\"currentPasswordKey\":\"$password_key\",\"userid\":\"$old_userid\",
    \"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":650000},
    \"keyring\":\"$keyring\",\"keyringRevision\":2}"
expect_problem 409 userid_taken

scenario "a receipt is kept"
request PUT /v1/account/receipt '{"receipt":"MIIT-receipt"}'
expect_status 200
request GET /v1/account
[[ $(json .receiptUpdatedAt) == 20* ]] || fail "a date"

scenario "the export is lines of JSON, of which the last one counts the others"
item=$(uuid)
sealed=$(random_base64 100)
request PUT "/v1/items/$item" "{\"format\":\"opaque\",\"body\":\"$sealed\"}" --header 'If-None-Match: *'
expect_status 201
request POST /v1/account/export "$(proof)"
expect_status 200
expect_header content-type application/x-ndjson
cp "$work/body" "$work/export"
[[ $(head -n 1 "$work/export" | jq --raw-output '.type, .version' | paste --serial --delimiters ' ') == 'export 1' ]] ||
    fail "the first line to say what it is"
[[ $(jq --raw-output 'select(.type == "item") | .id + " " + .body' "$work/export") == "$item $sealed" ]] ||
    fail "the item as it was sent"
[[ $(jq --raw-output 'select(.type == "keyring") | .keyring' "$work/export") == "$keyring" ]] || fail "the keyring"
[[ $(jq --raw-output 'select(.type == "receipt") | .receipt' "$work/export") == MIIT-receipt ]] || fail "the receipt"
[[ $(jq --raw-output 'select(.type == "credential") | .kdf.iterations' "$work/export") == 650000 ]] || fail "iterations"
jq --exit-status --slurp '(last.type == "end") and
    (last.counts == (.[:-1] | group_by(.type) | map({(.[0].type): length}) | add))' "$work/export" >/dev/null ||
    fail "the last line to count the others: $(tail -n 1 "$work/export")"
request POST /v1/account/export "{\"currentPasswordKey\":\"$(random_base64 32)\"}"
expect_problem 403 wrong_credentials

scenario "a deleted account is gone from every table but the audit log"
request DELETE /v1/account "{\"currentPasswordKey\":\"$(random_base64 32)\"}"
expect_problem 403 wrong_credentials
request DELETE /v1/account "$(proof)"
expect_status 204
request DELETE /v1/account "$(proof)"
expect_problem 401 unauthenticated
token=
request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"}"
expect_problem 401 wrong_credentials
pg_dump --data-only --schema saltern "$(server_setting SALTERN_OWNER_DATABASE_URL)" >"$work/dump"
[[ $(grep --count --fixed-strings "$account_id" "$work/dump") == 1 ]] || fail "the account to be in one line of the dump"
if grep --quiet --fixed-strings "$userid" "$work/dump"; then fail "no userid in the dump"; fi
request POST /v1/accounts "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\",\"kdf\":{\"iterations\":600000}}"
expect_status 201

start_own_server SALTERN_LOOPS=2

scenario "an account with 100,000 items is exported in constant memory"
register grace
# Any bytes serve as ciphertext: the export does not check them.
query "INSERT INTO saltern.items (account_id, item_id, revision, collection, format, body, created_at, updated_at)
    SELECT '$account_id', gen_random_uuid(), n, 'default', 'opaque', decode(repeat(md5(n::text), 48), 'hex'), now(), now()
    FROM generate_series(1, 100000) n"
query "UPDATE saltern.accounts SET revision = 100000 WHERE account_id = '$account_id'"
query "ANALYZE saltern.items"
server=$(own_server_process)
# The most memory that the server ever had, in KiB.
peak() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$server/status"; }
before=$(peak)
# As it comes, without a limit of time.
export=(curl --silent --show-error --noproxy '*' --cacert "$certificate" --header "Authorization: Bearer $token"
    --json "$(proof)" "$SALTERN_TEST_URL/v1/account/export" --output)
"${export[@]}" "$work/export"
after=$(peak)
[[ $(tail -n 1 "$work/export" | jq .counts.item) == 100000 ]] || fail "100,000 items: $(tail -n 1 "$work/export")"
[[ $(jq --raw-output 'select(.type == "item") | .id' "$work/export" | sort --unique | wc -l) == 100000 ]] ||
    fail "each of them once"
size=$(($(stat --format %s "$work/export") / 1024))
((size > 100000)) || fail "an export of 100 MB, which has $size KiB"
((after - before < 24576)) || fail "less than 24 MiB for an export of $size KiB: $before KiB before, $after KiB after"
printf 'export of %s KiB: at most %s KiB before, %s KiB after\n' "$size" "$before" "$after"

scenario "two exports of an account run at once, whatever loop its connections come to"
exports=()
for number in {1..10}; do
    "${export[@]}" "$work/export-$number" --limit-rate 100K --dump-header "$work/head-$number" 2>/dev/null &
    exports+=($!)
done
# all_answered: each has its status.
all_answered() { [[ $(cat "$work"/head-* 2>/dev/null | grep --count '^HTTP') == 10 ]]; }
wait_until 180 all_answered || fail "ten answers"
[[ $(cat "$work"/head-* | grep --count '^HTTP/1.1 200') == 2 ]] || fail "two exports, not those of $(cat "$work"/head-*)"
kill "${exports[@]}" 2>/dev/null || true
wait "${exports[@]}" || true
may_export() { [[ $("${export[@]}" /dev/null --write-out '%{http_code}') == 200 ]]; }
wait_until 180 may_export || fail "another one when those have ended"

scenario "an export breaks off when its session ends"
"${export[@]}" "$work/partial" --limit-rate 2M 2>"$work/curl-said" &
exporting=$!
wait_until 180 test -s "$work/partial" || fail "the export to begin"
request DELETE /v1/sessions/current
expect_status 204
result=0
wait "$exporting" || result=$?
((result == 18 || result == 56)) || fail "curl to notice that something is missing, which ended with $result"
if tail -n 1 "$work/partial" | grep --quiet '"type":"end"'; then fail "no last line"; fi

scenario "… and deleted at once"
log_in
request DELETE /v1/account "$(proof)"
expect_status 204
[[ $(query "SELECT count(*) FROM saltern.items") == 0 ]] || fail "no item to be left"
stop_own_server || fail "the server to end cleanly"
