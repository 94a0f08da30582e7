#!/usr/bin/env bash
# The whole life of an account: registered with an invite and a keyring, password and userid changed, protected by a second
# factor, recovered with a printed code, exported and deleted.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools

# kdf ITERATIONS
kdf() { printf '"kdf":{"iterations":%s}' "$1"; }

scenario "Ada registers with an invite, which gives her a plan, and the keyring that her items are sealed under"
invite=$(saltern invite create --plan pro --json | jq --raw-output '.invites[0].code')
prefix=localhost.saltern:
userid=$(unique ada)
password_key=$(stretch 'the first password' "$prefix$userid")
keyring=$(random_base64 120)
request POST /v1/accounts "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\",$(kdf 600000),
    \"keyring\":\"$keyring\",\"device\":{\"name\":\"Ada's phone\"},\"invite\":\"$invite\"}"
expect_status 201
account_id=$(json .accountId)
token=$(json .session.token)
request GET /v1/account
expect_json .plan pro
item=$(uuid)
sealed=$(random_base64 100)
request PUT "/v1/items/$item" "{\"format\":\"aes-256-gcm\",\"body\":\"$sealed\"}" --header 'If-None-Match: *'
expect_status 201

scenario "her web browser logs in, gets the keyring and reads what the phone has written"
phone=$token
try_log_in '"device":{"name":"Web"}'
expect_status 201
expect_json .keyring "$keyring"
expect_json .keyringRevision 1
web=$(json .session.token)
token=$web
request GET "/v1/items/$item"
expect_json .body "$sealed"

scenario "the phone puts another key onto the keyring, and the browser, which has the old one, does not overwrite it"
token=$phone
keyring=$(random_base64 140)
request PUT /v1/account/keyring "{\"keyring\":\"$keyring\"}" --header 'If-Match: "1"'
expect_status 200
token=$web
request PUT /v1/account/keyring "{\"keyring\":\"$(random_base64 120)\"}" --header 'If-Match: "1"'
expect_problem 412 precondition_failed
expect_json .current.keyring "$keyring"

scenario "she changes her password: the keyring is sealed anew, the items are not, and the browser is logged out"
token=$phone
new_key=$(stretch 'the second password' "$prefix$userid" 650000)
keyring=$(random_base64 140)
request PUT /v1/account/credential "{\"currentPasswordKey\":\"$password_key\",\"passwordKey\":\"$new_key\",$(kdf 650000),
    \"keyring\":\"$keyring\",\"keyringRevision\":2}"
expect_status 200
expect_json .sessionsEnded 1
expect_json .keyringRevision 3
try_log_in
expect_problem 401 wrong_credentials
password_key=$new_key
request POST /v1/kdf "{\"userid\":\"$userid\"}"
expect_json .iterations 650000
token=$web
request GET /v1/account
expect_problem 401 unauthenticated
token=$phone
request GET "/v1/items/$item"
expect_json .body "$sealed"

scenario "she moves to another address: it is salt, so the same password makes another key"
old_userid=$userid
userid=$(unique lovelace)
new_key=$(stretch 'the second password' "$prefix$userid" 650000)
request PUT /v1/account/userid "{\"currentPasswordKey\":\"$password_key\",\"userid\":\"$userid\",
    \"passwordKey\":\"$new_key\",$(kdf 650000),\"keyring\":\"$keyring\",\"keyringRevision\":3}"
expect_status 200
password_key=$new_key
request GET /v1/account
expect_json .userid "$userid"
expect_json .accountId "$account_id"
try_log_in
expect_status 201

scenario "she asks for a second factor"
request POST /v1/account/totp "$(proof)"
expect_status 201
secret=$(json .secret)
confirm_now() { request POST /v1/account/totp/confirm "{\"totp\":\"$(one_time_code "$secret")\"}"; }
expect_in_time 200 confirm_now
recovery_code=$(json '.recoveryCodes[0]')
try_log_in
expect_problem 401 totp_required
try_next_code() { try_log_in "\"totp\":\"$(one_time_code "$secret" 30)\""; }
expect_in_time 201 try_next_code

scenario "she prints a code for the day on which the password is forgotten, and seals the keys under it"
printed=$(openssl rand -hex 16)
recovery_key=$(stretch "$printed" "${prefix}recovery" 100000)
recovery_keyring=$(random_base64 140)
request GET /v1/account/keyring
expect_status 200
revision=$(json .revision)
request PUT /v1/account/recovery "{\"currentPasswordKey\":\"$password_key\",\"recoveryKey\":\"$recovery_key\",
    \"keyring\":\"$recovery_keyring\",\"accountKeyringRevision\":$revision}"
expect_status 200

scenario "she makes new data keys: not without a word about the code, which opens them from that moment on"
keyring=$(random_base64 180)
request PUT /v1/account/keyring "{\"keyring\":\"$keyring\"}" --header 'If-Match: *'
expect_problem 428 recovery_keyring_required
recovery_keyring=$(random_base64 160)
request PUT /v1/account/keyring "{\"keyring\":\"$keyring\",\"recoveryKeyring\":\"$recovery_keyring\"}" \
    --header 'If-Match: *'
expect_status 200
expect_json .recovery.set true

scenario "the day comes: the code opens the keys, and a session that can set a new password and nothing else"
phone=$token
token=
request POST /v1/recoveries "{\"userid\":\"$userid\",\"recoveryKey\":\"$recovery_key\"}"
expect_status 201
expect_json .keyring "$recovery_keyring"
revision=$(json .keyringRevision)
token=$(json .session.token)
request GET "/v1/items/$item"
expect_problem 401 unauthenticated
password_key=$(stretch 'the third password' "$prefix$userid" 650000)
keyring=$(random_base64 140)
change="\"passwordKey\":\"$password_key\",$(kdf 650000),\"keyring\":\"$keyring\""
request PUT /v1/account/credential "{$change}"
expect_problem 428 keyring_required
request PUT /v1/account/credential "{$change,\"keyringRevision\":$revision}"
expect_problem 428 recovery_keyring_required
change+=",\"recoveryKeyring\":\"$recovery_keyring\""
# The second time is that of a client which has not heard of the first one's success.
for _ in 1 2; do
    request PUT /v1/account/credential "{$change,\"keyringRevision\":$revision}"
    expect_status 200
    expect_json .currentSessionEnded true
    expect_json .recovery.set true
done
token=$phone
request GET /v1/account
expect_problem 401 unauthenticated

scenario "the second factor is asked for as ever: her phone is lost too, so she takes the paper"
try_log_in
expect_problem 401 totp_required
try_log_in "\"totp\":\"${recovery_code,,}\""
expect_status 201
expect_json .keyring "$keyring"
token=$(json .session.token)
request GET "/v1/items/$item"
expect_json .body "$sealed"
request DELETE /v1/account/totp "$(proof)"
expect_status 204

scenario "the paper is gone as well: new data keys, and no code opens them"
keyring=$(random_base64 180)
request PUT /v1/account/keyring "{\"keyring\":\"$keyring\",\"removeRecovery\":true}" --header 'If-Match: *'
expect_problem 422 missing_member
expect_json .field currentPasswordKey
request PUT /v1/account/keyring \
    "{\"keyring\":\"$keyring\",\"removeRecovery\":true,\"currentPasswordKey\":\"$password_key\"}" --header 'If-Match: *'
expect_status 200
expect_json .recovery.set false
request GET /v1/account
expect_json .recovery.set false

scenario "all of it is in her security log"
request GET '/v1/account/events?limit=100'
expect_status 200
for kind in session_opened credential_changed userid_changed totp_enabled totp_code_used totp_disabled recovery_set recovery_used \
    recovery_removed keyring_changed; do
    expect_json "[.events[].kind] | contains([\"$kind\"])" true
done

scenario "before she leaves she takes everything along"
request POST /v1/account/export "$(proof)"
expect_status 200
[[ $(tail --lines 1 <<<"$body" | jq --raw-output .type) == end ]] || fail "a whole export"
[[ $(jq --raw-output 'select(.type == "item").body' <<<"$body") == "$sealed" ]] || fail "the item in the export"
[[ $(jq --raw-output 'select(.type == "keyring").keyring' <<<"$body") == "$keyring" ]] || fail "the keyring in the export"

scenario "she leaves, and nothing stays but a line that an account was deleted"
request DELETE /v1/account "{\"currentPasswordKey\":\"$(random_base64 32)\"}"
expect_problem 403 wrong_credentials
request DELETE /v1/account "$(proof)"
expect_status 204
request GET /v1/account
expect_problem 401 unauthenticated
try_log_in
expect_problem 401 wrong_credentials
for table in $(query "SELECT table_name FROM information_schema.columns WHERE table_schema = 'saltern' AND column_name = 'account_id'"); do
    [[ $(query "SELECT count(*) FROM saltern.$table WHERE account_id = '$account_id'") == 0 ]] || fail "nothing in $table"
done
[[ $(query "SELECT action FROM saltern.audit_log WHERE target_account = '$account_id'") == account_deleted ]] ||
    fail "one row of the audit log"

scenario "both of her names are free"
for name in "$old_userid" "$userid"; do
    token=
    request POST /v1/accounts "{\"userid\":\"$name\",\"passwordKey\":\"$(random_base64 32)\",$(kdf 600000)}"
    expect_status 201
done
