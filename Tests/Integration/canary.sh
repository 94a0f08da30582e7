#!/usr/bin/env bash
# Known secrets go through every route, in valid and in invalid requests. Then the server's log, its errors, its metrics and a
# dump of the database are searched for them.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools

metrics=127.0.0.1:$(free_port)
start_own_server SALTERN_LOG_LEVEL=debug SALTERN_METRICS_LISTEN="$metrics"

# Every searched text by its name.
declare -A secret
remember() { secret[$1]=$2; }

# send …: a request, whose body is kept when it is an error.
send() {
    request "$@"
    ((status < 400)) || printf '%s\n' "$body" >>"$work/errors"
}

base64_to_hex() { openssl base64 -d -A <<<"$1" | hex; }
url_base64_to_hex() { tr '_-' '/+' <<<"$1" | openssl base64 -d -A | hex; }

base32_to_hex() { base32 --decode <<<"$1" | hex; }

base62_to_hex() {
    python3 -c 'import string, sys
digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
print("%032x" % sum(digits.index(c) * 62**i for i, c in enumerate(reversed(sys.argv[1]))))' "$1"
}

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
mapfile -t invites < <(saltern invite create --count 3 --json | jq --raw-output '.invites[].code')
invited() { printf '{%s,"kdf":{"iterations":600000},"keyring":"%s","invite":"%s"}' "$credentials" "$keyring" "$1"; }
send POST /v1/kdf "{\"userid\":\"$userid\"}"
send POST /v1/accounts "$(invited "${invites[0]}")"
expect_status 201
account_id=$(json .accountId)
token=$(json .session.token)
remember "the first token" "$token"
device_token=$(json .deviceToken)
remember "the device's token" "$device_token"
remember "the device's token in hexadecimal" "$(url_base64_to_hex "${device_token#sld_}")"
remember "the code of the device's token in hexadecimal" "$(url_base64_to_hex "${device_token#sld_}" | tail --bytes +33)"
send POST /v1/accounts "{$credentials,\"kdf\":{\"iterations\":600000},\"keyring\":\"$keyring\"}"
expect_status 409
send POST /v1/accounts "$(invited "${invites[1]}")"
expect_status 409
send POST /v1/accounts "$(invited "${invites[2]%?}")"
expect_problem 403 invalid_invite
send GET "/v1/invites/${invites[2]}"
expect_problem 404 not_found
send POST /v1/kdf "{\"userid\":\"$userid\"}"
send POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\",\"device\":{\"name\":\"$device\",\"token\":\"$device_token\"}}"
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

# Shares: one that stays, one that is used up, one that is deleted; the links' passphrase goes nowhere.
share_passphrase="canary$(openssl rand -hex 8)"
share_salt=$(random_base64 16)
share_sealed=$(random_base64 120)
share="\"format\":\"aes-256-gcm\",\"salt\":\"$share_salt\",\"iterations\":600000,\"sealed\":\"$share_sealed\""
share_ids=()
manage_tokens=()
for members in '' ',"maxViews":1' ''; do
    send POST /v1/shares "{$share$members}"
    expect_status 201
    share_ids+=("$(json .id)")
    manage_tokens+=("$(json .manageToken)")
done
send GET '/v1/shares?limit=1'
session_token=$token
token=
for share_id in "${share_ids[@]}"; do
    send HEAD "/v1/shares/$share_id" '' --head
    send GET "/v1/shares/$share_id" '' --header "Referer: $SALTERN_TEST_URL/s/$share_id"
    expect_status 200
done
send GET "/v1/shares/${share_ids[1]}"
expect_problem 404 not_found
# The page, also by the link of an older app, which has the passphrase in the path.
for page in "/s/${share_ids[0]}" "/s/${share_ids[0]}/$share_passphrase" "/s/${share_ids[0]}?x=$share_passphrase"; do
    send GET "$page"
    expect_status 200
    [[ $body != *"$share_passphrase"* && $body != *"${share_ids[0]}"* ]] || fail "a page that knows nothing of its address"
done
send GET "/s/${share_ids[0]}/$share_passphrase/more"
send GET "/assets/$share_passphrase"
expect_problem 404 not_found
token=${manage_tokens[0]}
send PUT "/v1/shares/${share_ids[0]}" "{$share,\"maxViews\":9}"
expect_status 200
token=${manage_tokens[2]}
send DELETE "/v1/shares/${share_ids[2]}"
expect_status 204
token=$session_token

scenario "and into every kind of refusal"
unencrypted=$(printf '%s' "$plaintext" | openssl base64 -A)
send POST /v1/sessions "{\"userid\":\"$userid\",\"password\":\"$password\"}"
expect_problem 422 password_refused
send POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password\"}"
expect_problem 422 not_a_stretched_key
send POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$(random_base64 32)\"}"
expect_problem 401 wrong_credentials
send POST /v1/sessions "{\"userid\":\"$password\",\"passwordKey\":\"$(random_base64 32)\",\"device\":{\"token\":\"$device_token\"}}"
expect_problem 401 wrong_credentials
send POST /v1/sessions "{$credentials,\"$device_token\":1}"
expect_problem 422 unknown_member
send POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$device_token\"}"
expect_problem 422 not_a_stretched_key
send GET "/v1/account/events?page=$device_token"
expect_problem 400 invalid_parameter
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
session_token=$token
for token in "$session_token" "${manage_tokens[2]}" "${manage_tokens[0]%?????}AAAAA" ""; do
    send PUT "/v1/shares/${share_ids[0]}" "{$share,\"maxViews\":\"$share_passphrase\"}"
    send PUT "/v1/shares/${share_ids[2]}" "{$share,\"passphrase\":\"$share_passphrase\"}"
    send PUT "/v1/shares/${share_ids[2]}" "{$share}"
    send DELETE "/v1/shares/${share_ids[2]}"
    send POST "/v1/shares/${share_ids[0]}" "{$share}"
    send GET "/v1/shares/${share_ids[0]}/$share_passphrase"
    send GET "/v1/shares/${share_ids[0]}?passphrase=$share_passphrase"
    send GET "/v1/shares/${share_ids[0]}%00"
    send GET "/v1/shares/${share_ids[0]}" '' --header 'Purpose: prefetch'
    expect_problem 403 prefetch_refused
done
token=$session_token
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

for index in "${!invites[@]}"; do
    remember "invite $index" "${invites[index]}"
    remember "invite $index without its prefix" "${invites[index]#sli_}"
    remember "invite $index in hexadecimal" "$(url_base64_to_hex "${invites[index]#sli_}")"
done

scenario "and into recovery and rotation"
recovery_key=$(stretch "canary-$(openssl rand -hex 8)" localhost.saltern:recovery 10000)
recovery_keyring=$(random_base64 120)
present="\"currentPasswordKey\":\"$password_key\""
recovery="\"recoveryKey\":\"$recovery_key\",\"keyring\":\"$recovery_keyring\",\"accountKeyringRevision\":1"
send PUT /v1/account/recovery "{$present,$recovery}"
expect_status 200
send PUT /v1/account/recovery "{\"currentPasswordKey\":\"$recovery_key\",$recovery}"
expect_problem 403 wrong_credentials
send PUT /v1/account/recovery "{$present,\"recoveryKey\":\"$password_key\"}"
expect_problem 422 recovery_key_reused
send PUT /v1/account/recovery "{$present,$recovery,\"more\":\"$recovery_key\"}"
expect_problem 422 unknown_member
send GET "/v1/items/$id"
revision=$(json .revision)
send POST /v1/rotations "{$present}"
expect_status 201
rotation=$(json .id)
staged_title=$(random_base64 45)
staged_body=$(random_base64 120)
staged="\"format\":\"opaque\",\"title\":\"$staged_title\",\"body\":\"$staged_body\""
send PUT "/v1/rotations/$rotation/items" "{\"items\":[{\"id\":\"$id\",\"ifRevision\":$revision,\"format\":\"opaque\",\"body\":\"$unencrypted\"}]}"
expect_problem 422 not_encrypted
commit="{$present,\"passwordKey\":\"$password_key\",\"kdf\":{\"iterations\":600000},
    \"keyring\":\"$keyring\",\"keyringRevision\":2,\"recoveryKeyring\":\"$recovery_keyring\"}"
send POST "/v1/rotations/$rotation/commit" "$commit"
expect_problem 409 rotation_incomplete
send PUT "/v1/rotations/$rotation/items" "{\"items\":[{\"id\":\"$id\",\"ifRevision\":$revision,$staged}]}"
expect_status 200
send POST "/v1/rotations/$rotation/commit" "$commit"
expect_status 200
send DELETE "/v1/rotations/$rotation"
expect_problem 409 rotation_committed
kept=$token
token=
send POST /v1/recoveries "{\"userid\":\"$userid\",\"recoveryKey\":\"$password_key\",\"device\":{\"name\":\"$device\"}}"
expect_problem 401 wrong_credentials
send POST /v1/recoveries "{\"userid\":\"$userid\",\"recoveryKey\":\"$recovery_key\",\"device\":{\"name\":\"$device\"}}"
expect_status 201
token=$(json .session.token)
remember "the restricted token" "$token"
remember "the restricted token's secret in hexadecimal" "$(url_base64_to_hex "${token#slt_}" | tail --bytes +33)"
send GET /v1/account
expect_problem 401 unauthenticated
token=$kept
remember "the recovery key" "$recovery_key"
remember "the recovery key in hexadecimal" "$(base64_to_hex "$recovery_key")"

scenario "and into a second factor"
proof="{\"currentPasswordKey\":\"$password_key\"}"
send POST /v1/account/totp "$proof"
expect_status 201
otp_secret=$(json .secret)
send POST /v1/account/totp/confirm "{\"totp\":\"$(one_time_code "$otp_secret" 3600)\"}"
expect_problem 403 wrong_totp
send POST /v1/account/totp/confirm "{\"totp\":\"$otp_secret\"}"
expect_problem 422 malformed_totp
confirm_now() { send POST /v1/account/totp/confirm "{\"totp\":\"$(one_time_code "$otp_secret")\"}"; }
expect_in_time 200 confirm_now
mapfile -t recovery_codes < <(json '.recoveryCodes[]')
send POST /v1/account/totp "$proof"
expect_problem 409 totp_enabled
session_token=$token
token=
send POST /v1/sessions "{$credentials}"
expect_problem 401 totp_required
send POST /v1/sessions "{$credentials,\"totp\":\"${recovery_codes[0]}\"}"
expect_status 201
send POST /v1/sessions "{$credentials,\"totp\":\"${recovery_codes[0]}\"}"
expect_problem 401 wrong_totp
send POST /v1/sessions "{$credentials,\"totp\":\"${recovery_codes[1]}-A\"}"
expect_problem 422 malformed_totp
token=$session_token
remember "the secret of one-time passwords" "$otp_secret"
remember "the secret of one-time passwords in hexadecimal" "$(base32_to_hex "$otp_secret")"
for index in "${!recovery_codes[@]}"; do
    remember "recovery code $index" "${recovery_codes[index]}"
    remember "recovery code $index without hyphens" "${recovery_codes[index]//-/}"
    remember "recovery code $index in hexadecimal" "$(printf '%s' "${recovery_codes[index]//-/}" | hex)"
done
master_key=$(grep --invert-match '^#' "$own_home/master.key")
remember "the master key" "$master_key"
remember "the master key in hexadecimal" "$(base64_to_hex "$master_key")"

scenario "key, keyring and userid are changed, and what they were is nowhere any more"
replaced_key=$password_key
replaced_keyring=$keyring
replaced_userid=$userid
password_key=$(random_base64 32)
keyring=$(random_base64 120)
userid=$(unique canary)
receipt="canary-$(openssl rand -hex 8)"
send PUT /v1/account/keyring "{\"keyring\":\"$keyring\"}"
expect_problem 428 precondition_required
send PUT /v1/account/keyring "{\"keyring\":\"$(random_base64 120)\",\"recoveryKeyring\":\"$recovery_keyring\"}" \
    --header 'If-Match: "2"'
expect_status 200
between=$(random_base64 32)
new_key="\"passwordKey\":\"$between\",\"kdf\":{\"iterations\":600000},\"keyring\":\"$keyring\",
    \"recoveryKeyring\":\"$recovery_keyring\""
send PUT /v1/account/credential "{\"currentPasswordKey\":\"$(random_base64 32)\",$new_key}"
expect_problem 403 wrong_credentials
send PUT /v1/account/credential "{\"currentPasswordKey\":\"$replaced_key\",$new_key,\"keyringRevision\":1}"
expect_problem 409 keyring_changed
send PUT /v1/account/credential "{\"currentPasswordKey\":\"$replaced_key\",$new_key}"
expect_problem 428 keyring_required
send PUT /v1/account/credential "{\"currentPasswordKey\":\"$replaced_key\",$new_key,\"keyringRevision\":3}"
expect_status 200
send PUT /v1/account/userid "{\"currentPasswordKey\":\"$between\",\"userid\":\"$userid\",
    \"passwordKey\":\"$password_key\",\"kdf\":{\"iterations\":600000},\"keyring\":\"$keyring\",\"keyringRevision\":4,
    \"recoveryKeyring\":\"$recovery_keyring\"}"
expect_status 200
send PUT /v1/account/receipt "{\"receipt\":\"$receipt\"}"
expect_status 200
send POST /v1/account/export "{\"currentPasswordKey\":\"$password_key\"}"
expect_status 200
send DELETE /v1/account "{\"currentPasswordKey\":\"$between\"}"
expect_problem 403 wrong_credentials
remember "the replaced key" "$replaced_key"
remember "the replaced key in hexadecimal" "$(base64_to_hex "$replaced_key")"
remember "the replaced verifier in hexadecimal" "$(openssl base64 -d -A <<<"$replaced_key" | openssl dgst -sha256 -binary | hex)"
remember "the key between" "$between"
remember "the key between in hexadecimal" "$(base64_to_hex "$between")"
remember "the replaced keyring in hexadecimal" "$(base64_to_hex "$replaced_keyring")"
remember "the replaced userid" "$replaced_userid"

remember "the password" "$password"
remember "the plaintext" "$plaintext"
remember "the plaintext in base64" "$unencrypted"
remember "the plaintext in hexadecimal" "$(printf '%s' "$plaintext" | hex)"
remember "the password key" "$password_key"
remember "the password key in hexadecimal" "$(base64_to_hex "$password_key")"
remember "the third token" "$token"
remember "the third token's secret in hexadecimal" "$(url_base64_to_hex "${token#slt_}" | tail --bytes +33)"

remember "a share's passphrase" "$share_passphrase"
for index in "${!manage_tokens[@]}"; do
    remember "manage token $index" "${manage_tokens[index]}"
    remember "manage token $index in hexadecimal" "$(url_base64_to_hex "${manage_tokens[index]#slm_}=")"
done

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
pg_dump "$(server_setting SALTERN_OWNER_DATABASE_URL)" >"$work/dump"
verifier=$(openssl base64 -d -A <<<"$password_key" | openssl dgst -sha256 -binary | openssl base64)
search "$work/dump" "the dump"
# The search finds stored values: the verifier and the sealed bytes, in PostgreSQL's hexadecimal.
code_hash=$({
    python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))' "${account_id//-/}"
    printf '%s' "${recovery_codes[1]//-/}"
} | openssl dgst -sha256 -binary | openssl base64)
recovery_verifier=$(openssl base64 -d -A <<<"$recovery_key" | openssl dgst -sha256 -binary | openssl base64)
for known in "$verifier" "$share_sealed" "$share_salt" "$keyring" "$staged_title" "$staged_body" "$recovery_verifier" \
    "$recovery_keyring" "$code_hash"; do
    grep --quiet --fixed-strings "$(base64_to_hex "$known")" "$work/dump" || fail "the dump to have $known"
done
grep --quiet --fixed-strings "$userid" "$work/dump" || fail "the dump to have the userid"
grep --quiet --fixed-strings "$receipt" "$work/dump" || fail "the dump to have the receipt"
grep --quiet --fixed-strings "$(base62_to_hex "${share_ids[0]}")" "$work/dump" || fail "the dump to have the share's id"

remember "the verifier" "$verifier"
remember "the verifier in hexadecimal" "$(base64_to_hex "$verifier")"
remember "the recovery key's verifier" "$recovery_verifier"
remember "the recovery key's verifier in hexadecimal" "$(base64_to_hex "$recovery_verifier")"
remember "the device's name" "$device"
remember "the userid" "$userid"

scenario "no error says anything back that is secret"
(($(wc -l <"$work/errors") >= 15)) || fail "at least 15 errors"
search "$work/errors" "the errors"

for index in "${!share_ids[@]}"; do
    remember "the id of share $index" "${share_ids[index]}"
    remember "the id of share $index in hexadecimal" "$(base62_to_hex "${share_ids[index]}")"
done
remember "a share's salt" "$share_salt"
remember "a share's payload" "$share_sealed"
remember "a share's salt in hexadecimal" "$(base64_to_hex "$share_salt")"
remember "a share's payload in hexadecimal" "$(base64_to_hex "$share_sealed")"
remember "the keyring" "$keyring"
remember "the receipt" "$receipt"
remember "the sealed title" "$title"
remember "the sealed body" "$body_bytes"
remember "the keyring in hexadecimal" "$(base64_to_hex "$keyring")"
remember "the sealed title in hexadecimal" "$(base64_to_hex "$title")"
remember "the sealed body in hexadecimal" "$(base64_to_hex "$body_bytes")"
remember "the recovery keyring" "$recovery_keyring"
remember "the recovery keyring in hexadecimal" "$(base64_to_hex "$recovery_keyring")"
remember "the title that was sealed anew" "$staged_title"
remember "the body that was sealed anew" "$staged_body"
remember "the title that was sealed anew, in hexadecimal" "$(base64_to_hex "$staged_title")"
remember "the body that was sealed anew, in hexadecimal" "$(base64_to_hex "$staged_body")"
remember "the rotation's id" "$rotation"
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
# The hints of scripts/run are not part of the server's log.
grep '^{' "$own_home/run.log" >"$work/log"
search "$work/log" "the log"

scenario "nor does the log of PostgreSQL"
own_database_logs >"$work/postgres.log"
search "$work/postgres.log" "PostgreSQL's log"
