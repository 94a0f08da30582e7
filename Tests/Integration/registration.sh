#!/usr/bin/env bash
# From no account to a session: request KDF parameters, derive keys, register, log in on another device.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

scenario "the service says what a client needs to know"
request GET /v1/service
expect_status 200
expect_json .kdf.algorithm PBKDF2-HMAC-SHA256
expect_json .kdf.keyLength 32
expect_json .registration open
expect_header cache-control 'no-store, no-transform'
expect_header x-content-type-options nosniff
[[ $(header x-request-id) =~ ^[0-9a-f]{32}$ ]] || fail "an X-Request-Id"
[[ -z $(header strict-transport-security) ]] || fail "no Strict-Transport-Security for localhost"
[[ -z $(header server) ]] || fail "no Server header"
salt_prefix=$(json .saltPrefix)
default_iterations=$(json .kdf.iterations)
request HEAD /v1/service '' --head
expect_status 200
(($(header content-length) > 0)) || fail "the length of what GET would say"

scenario "somebody who is not registered gets parameters like everybody else, and the same each time"
userid=$(unique ada)
request POST /v1/kdf "{\"userid\":\"$userid\"}"
expect_status 200
expect_json .saltPrefix "$salt_prefix"
expect_json .salt "$salt_prefix$userid"
expect_json .keyLength 32
before=$body
request POST /v1/kdf "{\"userid\":\"$userid\"}"
expect_json . "$(jq --raw-output . <<<"$before")"

scenario "registration opens the first session and keeps the sealed keyring"
password_key=$(stretch 'correct horse battery staple' "$salt_prefix$userid" "$default_iterations")
keyring=$(random_base64 200)
credentials="\"userid\":\"$userid\",\"passwordKey\":\"$password_key\""
registration="{$credentials,\"kdf\":{\"iterations\":$default_iterations},\"keyring\":\"$keyring\",\"device\":{\"name\":\"Ada's phone\"}}"
request POST /v1/accounts "$registration"
expect_status 201
expect_json '.session.token | test("^slt_[A-Za-z0-9_-]{64}$")' true
account_id=$(json .accountId)
token=$(json .session.token)

request GET /v1/account
expect_status 200
expect_json .accountId "$account_id"
expect_json .userid "$userid"
expect_json .usage.items 0
expect_json .usage.sessions 1

scenario "the userid is taken now, whoever asks and with whatever key"
token=
request POST /v1/accounts "$registration"
expect_problem 409 userid_taken
expect_json .field userid
request POST /v1/accounts "${registration/$password_key/$(random_base64 32)}"
expect_problem 409 userid_taken

scenario "the parameters are those of the account"
request POST /v1/kdf "{\"userid\":\"$userid\"}"
expect_json .iterations "$default_iterations"

scenario "the password alone leads to a session and to the keyring on a new device"
request POST /v1/sessions "{$credentials,\"device\":{\"name\":\"new phone\"}}"
expect_status 201
expect_json .accountId "$account_id"
expect_json .keyring "$keyring"
expect_json .keyringRevision 1
expect_json .kdfUpgradeRequired false
token=$(json .session.token)
request GET /v1/account
expect_json .usage.sessions 2

scenario "a wrong key and an unknown userid are told the same"
token=
request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$(random_base64 32)\"}"
expect_problem 401 wrong_credentials
expect_header www-authenticate Bearer
wrong_key=$(json 'del(.requestId)')
request POST /v1/sessions "{\"userid\":\"$(unique nobody)\",\"passwordKey\":\"$(random_base64 32)\"}"
expect_problem 401 wrong_credentials
[[ $(json 'del(.requestId)') == "$wrong_key" ]] || fail "the same body for an unknown userid: $wrong_key"

scenario "more iterations than the default are welcome, and the login parameters say so"
userid=$(unique grace)
request POST /v1/accounts "{\"userid\":\"$userid\",\"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":712345}}"
expect_status 201
request POST /v1/kdf "{\"userid\":\"$userid\"}"
expect_json .iterations 712345

scenario "a blinded userid is taken as it is, upper case and all"
userid=$(random_base64 32)
request POST /v1/accounts "{\"userid\":\"$userid\",\"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":600000}}"
expect_status 201

scenario "a userid need not be ASCII, only canonical"
userid=zoë-$(openssl rand -hex 6)
request POST /v1/accounts "{\"userid\":\"$userid\",\"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":600000}}"
expect_status 201
request POST /v1/kdf "{\"userid\":\"Z${userid:1}\"}"
expect_problem 422 userid_not_canonical
expect_json .canonical "$userid"
