# shellcheck shell=bash disable=SC2034
# What the scenarios have in common: a server, an account, a request, an expectation.
#
# A scenario is a bash script that sources this file, says what it shows, and drives a real server with curl:
#
#   source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
#   scenario "a person logs in on a new device"
#   register ada
#   request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"}"
#   expect_status 201
#   expect_json '.session.token | startswith("slt_")' true
#
# scripts/test runs all of them against one server, which SALTERN_TEST_URL and SALTERN_TEST_HOME name. Run alone, a
# scenario starts a server of its own from .build/release/saltern. Scenarios share it, so each makes its own accounts.
# scripts/citus runs them against a server on a cluster (SALTERN_TEST_CLUSTER_DIRECTORY, _PORT, and the number of the node that
# servers talk to, _ENTRY): own servers have databases of their own there.
set -euo pipefail

# shellcheck source=scripts/lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/../../scripts/lib/common.sh"
# shellcheck source=scripts/lib/throwaway.sh
source "$repository/scripts/lib/throwaway.sh"
# shellcheck source=scripts/lib/cluster.sh
source "$repository/scripts/lib/cluster.sh"

# The last request's outcome.
status=
body=
headers=

# The account that register made, or that log_in logged in.
userid=
password_key=
account_id=
token=

# The item that create_item made, and its body.
id=
content=

current_scenario=${0##*/}
work=$(mktemp --directory)

# shellcheck disable=SC2317  # the trap calls it
finish() {
    local result=$?
    trap - EXIT
    rm -rf -- "$work"
    remove_own_server || result=1
    stop_throwaway || result=1
    ((result == 0)) || printf 'FAILED  %s\n' "$current_scenario"
    exit "$result"
}
trap finish EXIT
trap 'exit 130' INT TERM

executable=${SALTERN_TEST_EXECUTABLE:-$repository/.build/release/saltern}
# Of those that ask for it.
client=${SALTERN_TEST_CLIENT:-$repository/.build/debug/saltern-client}

require_client() { [[ -x $client ]] || die "cannot execute $client: swift build --product saltern-client"; }

# device NAME ARGUMENT…: runs saltern-client in the home of a device; fills status, body (its output) and headers (its errors).
device() {
    local home=$work/$1
    shift
    mkdir --parents -- "$home"
    status=0
    env --ignore-environment HOME="$home" PATH="$PATH" "$client" "$@" >"$work/body" 2>"$work/errors" || status=$?
    body=$(tr -d '\0' <"$work/body")
    headers=$(<"$work/errors")
}

# expect_error STATUS CODE: what saltern-client --json reports of its failure.
expect_error() {
    expect_status "$1"
    [[ $(jq --raw-output .error.code <<<"$headers") == "$2" ]] || fail "the error $2"
}

if [[ -z ${SALTERN_TEST_URL:-} ]]; then
    start_throwaway "$executable"
    SALTERN_TEST_URL=$throwaway_url
    SALTERN_TEST_HOME=$throwaway_home
fi
certificate=$SALTERN_TEST_HOME/tls/certificate.pem

# scenario SENTENCE: what the lines that follow show.
scenario() {
    current_scenario=$1
    printf -- '-- %s\n' "$1"
}

fail() {
    printf 'expected %s\n' "$*"
    printf 'got status %s\n%s\n%s\n' "$status" "$headers" "${body:0:2000}"
    exit 1
} >&2

# request METHOD PATH [BODY [CURL-ARGUMENT…]]: sends it, with the token if there is one, and fills status, headers, body.
# An empty BODY sends none.
request() {
    local method=$1 path=$2 payload=${3:-} arguments=()
    shift $(($# < 3 ? $# : 3))
    [[ -z $token ]] || arguments+=(--header "Authorization: Bearer $token")
    if [[ -n $payload ]]; then
        printf '%s' "$payload" >"$work/payload"
        arguments+=(--header 'Content-Type: application/json' --data-binary "@$work/payload")
    fi
    : >"$work/body"
    status=$(curl --silent --show-error --noproxy '*' --max-time 180 --cacert "$certificate" --request "$method" \
        --dump-header "$work/headers" --output "$work/body" --write-out '%{http_code}' \
        "${arguments[@]}" "$@" "$SALTERN_TEST_URL$path")
    headers=$(tr -d '\r' <"$work/headers")
    body=$(tr -d '\0' <"$work/body")
}

# json FILTER: what jq makes of the body.
json() { jq --raw-output "$1" <<<"$body"; }

# header NAME: the value of a header of the reply; nothing when it is not there.
header() { sed -n "s/^$1: //Ip" <<<"$headers"; }

expect_status() { [[ $status == "$1" ]] || fail "status $1"; }

# expect_json FILTER VALUE
expect_json() {
    local value
    value=$(json "$1") || fail "a JSON body in which $1 is $2"
    [[ $value == "$2" ]] || fail "$1 to be $2, which is $value"
}

# expect_header NAME VALUE
expect_header() { [[ $(header "$1") == "$2" ]] || fail "header $1: $2"; }

# expect_problem STATUS CODE: an RFC 9457 reply.
expect_problem() {
    expect_status "$1"
    expect_header content-type application/problem+json
    expect_json .code "$2"
}

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
# random: the server cannot tell the difference, and the derivation takes longer than the rest of a short scenario.
register() {
    userid=$(unique "$1")
    password_key=$(if [[ -n ${2:-} ]]; then stretch "$2" "localhost.saltern:$userid"; else random_base64 32; fi)
    token=
    request POST /v1/accounts "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\",\"kdf\":{\"iterations\":600000}}"
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

# create_item: a new item of the caller.
create_item() {
    id=$(uuid)
    content=$(random_base64 100)
    request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$content\"}" --header 'If-None-Match: *'
    expect_status 201
}

# one_time_code SECRET [SECONDS]: the code now, or this much later, by pyotp, an independent implementation of RFC 6238. Needs
# ensure_python_tools.
one_time_code() {
    "$repository/.venv/bin/python" -c \
        'import sys, time, pyotp; print(pyotp.TOTP(sys.argv[1]).at(int(time.time()) + int(sys.argv[2])))' "$1" "${2:-0}"
}

# on_every_loop COMMAND…: whether it succeeds so often that each of the server's loops has had its turn, for what each of them
# finds out by itself: the kernel gives a new connection to any of them.
on_every_loop() {
    local _
    for _ in {1..16}; do "$@" || return 1; done
}

# with_settings [NAME=VALUE]… COMMAND…: a command with the server's own settings, but for those.
with_settings() (
    # shellcheck source=/dev/null
    source "$SALTERN_TEST_HOME/run.env"
    # Commands refuse settings that they do not know.
    unset "${!SALTERN_TEST_@}"
    exec env "$@"
)

# saltern ARGUMENT…: the command, talking to the server's own database.
saltern() { with_settings saltern "$@"; }

# A server of the scenario's own, for what the others must not feel: signals, kills, other settings.
own_pid=
own_home=
own_port=
# The name of its database, and on a cluster what leads to it.
own_database=saltern
own_database_urls=()

# start_own_server [NAME=VALUE]…: serves from own_home, which a later start finds as it was left; what follows talks to it.
start_own_server() {
    local name clean=()
    for name in "${!SALTERN_@}"; do
        clean+=(--unset "$name")
    done
    if [[ -z $own_home ]]; then
        own_home=$(mktemp --directory --tmpdir saltern-home-XXXXXX)
        chmod 0711 -- "$own_home"
        own_port=$(free_port)
        if is_on_cluster; then make_own_database; fi
    fi
    : >"$own_home/run.log"
    setpriv --pdeathsig TERM env "${clean[@]}" SALTERN_HOME="$own_home" SALTERN_LISTEN="127.0.0.1:$own_port" \
        "${own_database_urls[@]}" "$@" \
        "$repository/scripts/run" --executable "$executable" </dev/null >>"$own_home/run.log" 2>&1 &
    own_pid=$!
    if ! wait_until 180 own_server_is_ready_or_gone || is_gone "$own_pid"; then
        tail -n 40 "$own_home/run.log" >&2
        die "the server did not start"
    fi
    SALTERN_TEST_HOME=$own_home
    SALTERN_TEST_URL=$(sed -n 's/^ready //p' "$own_home/run.log")
    certificate=$own_home/tls/certificate.pem
}

own_server_is_ready_or_gone() { is_gone "$own_pid" || grep -q '^ready ' "$own_home/run.log"; }

# The server's process; own_pid is that of scripts/run.
own_server_process() { cat "$own_home/server.pid"; }

# wait_for_own_server SECONDS: until it has ended by itself or by a signal; its exit status.
wait_for_own_server() {
    local result=0
    wait_until "$1" is_gone "$own_pid" || fail "the server to have ended within $1 s"
    wait "$own_pid" || result=$?
    own_pid=
    return "$result"
}

# stop_own_server: fails when it did not end cleanly.
stop_own_server() {
    local result=0
    [[ -n $own_pid ]] || return 0
    end_process "$own_pid" TERM 180
    wait "$own_pid" 2>/dev/null || result=$?
    own_pid=
    return "$result"
}

remove_own_server() {
    local result=0
    stop_own_server || result=$?
    [[ -z $own_home ]] || rm -rf -- "$own_home"
    ((${#own_database_urls[@]} == 0)) || cluster_drop_database "$own_database" || result=1
    return "$result"
}

is_on_cluster() { [[ -n ${SALTERN_TEST_CLUSTER_DIRECTORY:-} ]]; }

make_own_database() {
    local owner_url
    cluster_directory=$SALTERN_TEST_CLUSTER_DIRECTORY cluster_port=$SALTERN_TEST_CLUSTER_PORT
    own_database=scenario_$(openssl rand -hex 6)
    owner_url=$(cluster_url "$cluster_port" saltern_owner "$own_database")
    own_database_urls=("SALTERN_OWNER_DATABASE_URL=$owner_url"
        "SALTERN_DATABASE_URL=$(cluster_url $((cluster_port + SALTERN_TEST_CLUSTER_ENTRY)) saltern_app "$own_database")")
    cluster_make_database "$own_database"
    (
        unset "${!SALTERN_TEST_@}"
        env "${own_database_urls[@]}" "$executable" migrate distribute >/dev/null
    ) || die "the database was not spread over the cluster"
}

# own_database_url ROLE DATABASE: in the PostgreSQL that the own server talks to.
own_database_url() (
    # shellcheck source=/dev/null
    source "$own_home/run.env"
    url=${SALTERN_DATABASE_URL/saltern_app@/$1@}
    printf '%s\n' "${url%/*}/$2"
)

# superuser SQL: the result of the statement in that PostgreSQL, as its superuser in another database.
superuser() {
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --tuples-only --no-align --command "$1" "$(own_database_url postgres postgres)"
}

# Its process.
own_postmaster() {
    local data=$own_home/postgres
    ! is_on_cluster || data=$cluster_directory/$SALTERN_TEST_CLUSTER_ENTRY
    head -n 1 "$data/postmaster.pid"
}

# What it has logged; on a cluster, with what the other nodes have.
own_database_logs() {
    if is_on_cluster; then cat -- "$cluster_directory"/[0-9].log; else cat -- "$own_home/postgres.log"; fi
}

# crash_own_database: an immediate shutdown, after which PostgreSQL recovers as after a crash. A private PostgreSQL ends the own
# server with it; a node of a cluster is started again, and the server continues.
crash_own_database() {
    local postmaster
    postmaster=$(own_postmaster)
    kill -QUIT "$postmaster"
    is_on_cluster || return 0
    wait_until 180 is_gone "$postmaster" || fail "the node to be gone"
    eval "$(cluster_start_words "$SALTERN_TEST_CLUSTER_ENTRY")" || fail "the node to start again"
}

# query SQL: the result of the statement, as the schema's owner.
query() (
    # shellcheck source=/dev/null
    source "$SALTERN_TEST_HOME/run.env"
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --tuples-only --no-align --command "$1" "$SALTERN_OWNER_DATABASE_URL"
)
