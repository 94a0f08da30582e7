# shellcheck shell=bash disable=SC2034,SC2154
# Accounts of the scenarios, with their keys, items and second factors.

# The account that register made, or that log_in logged in.
userid=
password_key=
account_id=
token=

# The item that create_item made, and its body.
id=
content=

# stretch PASSWORD SALT [ITERATIONS]: the password key, in base64.
stretch() {
    openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt "pass:$1" -kdfopt "salt:$2" -kdfopt "iter:${3:-600000}" \
        -binary PBKDF2 | base64 --wrap 0
}

# unique NAME: a userid that no other scenario uses.
unique() { printf '%s-%s@example.org' "$1" "$(openssl rand -hex 6)"; }

uuid() { cat /proc/sys/kernel/random/uuid; }

# random_base64 BYTES
random_base64() { openssl rand -base64 "$1" | tr -d '\n'; }

hex() { od -An -v -tx1 | tr -d ' \n'; }

# register NAME [PASSWORD]: a new account whose userid starts with NAME, and its first session. Without a password its key is
# random: the server cannot tell the difference, and the derivation takes longer than the rest of a short scenario. After a
# passing failure the account may exist, so that another userid is taken.
register() {
    local _
    for _ in {1..20}; do
        userid=$(unique "$1")
        password_key=$(if [[ -n ${2:-} ]]; then stretch "$2" "localhost.saltern:$userid"; else random_base64 32; fi)
        token=
        once=yes request POST /v1/accounts \
            "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\",\"kdf\":{\"iterations\":600000}}" || true
        failure_passes || break
        say "registers again after status $status $(json .code 2>/dev/null)"
        sleep 1
    done
    expect_status 201
    account_id=$(json .accountId)
    token=$(json .session.token)
}

# log_in [USERID PASSWORD-KEY]: a new session of the account; of the current one when none is named.
log_in() {
    userid=${1:-$userid}
    password_key=${2:-$password_key}
    token=
    request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"}"
    expect_status 201
    account_id=$(json .accountId)
    token=$(json .session.token)
}

# try_log_in [MEMBERS]: the reply to a log-in with the present userid and password key; the token stays as it is.
try_log_in() {
    local kept=$token
    token=
    request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"${1:+,$1}}"
    token=$kept
}

# proof [MEMBERS]: the body of a request that requires the password key.
proof() { printf '{"currentPasswordKey":"%s"%s}' "$password_key" "${1:+,$1}"; }

# create_item: a new item of the caller.
create_item() {
    id=$(uuid)
    content=$(random_base64 100)
    request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$content\"}" --header 'If-None-Match: *'
    expect_status 201
}

# replace_item TAG: other content for this item.
replace_item() {
    request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" --header "If-Match: $1"
}

# item_is_read: true if the server returns this item.
item_is_read() { request GET "/v1/items/$id" && [[ $status == 200 ]]; }

# one_time_code SECRET [SECONDS]: the code now, or this much later, by pyotp, an independent implementation of RFC 6238. Needs
# ensure_python_tools.
one_time_code() {
    "$repository/.venv/bin/python" -c \
        'import sys, time, pyotp; print(pyotp.TOTP(sys.argv[1]).at(int(time.time()) + int(sys.argv[2])))' "$1" "${2:-0}"
}

# unused_code SECRET: the code now, also after a log-in with it. Only for an own server, because it resets all accounts.
unused_code() {
    query 'UPDATE saltern.second_factors SET last_step = 0'
    one_time_code "$1"
}

# expect_in_time STATUS COMMAND…: the command computes a one-time code and sends it. It is repeated when the status is another one
# and the code's 30 seconds have ended meanwhile.
expect_in_time() {
    local _ expected=$1 step
    shift
    for _ in {1..20}; do
        step=$(($(date +%s) / 30))
        "$@"
        [[ $status != "$expected" ]] || return 0
        (($(date +%s) / 30 > step)) || break
    done
    fail "status $expected"
}
