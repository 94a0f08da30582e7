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

# The output of the last run_command.
said=

current_scenario=${0##*/}
work=$(mktemp --directory)

# Functions and commands without arguments that the end of a scenario calls first, in this order, and the folders that it then
# deletes.
at_end=()
folders_at_end=()

# shellcheck disable=SC2317  # the trap calls it
finish() {
    local result=$? command
    trap - EXIT
    for command in "${at_end[@]}"; do "$command" || result=1; done
    ((${#folders_at_end[@]} == 0)) || rm -rf -- "${folders_at_end[@]}"
    stop_ruler
    rm -rf -- "$work"
    remove_own_server || result=1
    stop_throwaway || result=1
    ((result == 0)) || printf 'FAILED  %s\n' "$current_scenario"
    exit "$result"
}
trap finish EXIT
trap 'exit 130' INT TERM

executable=${SALTERN_TEST_EXECUTABLE:-$repository/.build/release/saltern}
# shellcheck source=Tests/Integration/lib/accounts.sh
source "$repository/Tests/Integration/lib/accounts.sh"
# shellcheck source=Tests/Integration/lib/devices.sh
source "$repository/Tests/Integration/lib/devices.sh"

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
# An empty BODY sends none. A slow machine can exhaust the server's time limits. Therefore a passing failure is repeated, unless
# the scenario expects it: once=yes request …
request() {
    local _
    repeated=
    for _ in {1..20}; do
        request_result=0 request_begun=$SECONDS
        send_request "$@" || request_result=$?
        [[ -z ${once:-} ]] || break
        failure_passes || break
        ((++repetitions <= 40)) || fail "a server that replies within its limits of time"
        say "repeated after status $status $(json .code 2>/dev/null): $1 $2"
        repeated=$1
        sleep 1
    done
    return "$request_result"
}

# Of the last request: curl's exit status, the second of its start, and its method if it was repeated.
request_result=0
request_begun=0
repeated=
# The number of repeated requests of the scenarios in a file.
repetitions=0

send_request() {
    local method=$1 path=$2 payload=${3:-} arguments=() result=0
    shift $(($# < 3 ? $# : 3))
    [[ -z $token ]] || arguments+=(--header "Authorization: Bearer $token")
    if [[ -n $payload ]]; then
        printf '%s' "$payload" >"$work/payload"
        arguments+=(--header 'Content-Type: application/json' --data-binary "@$work/payload")
    fi
    : >"$work/body"
    : >"$work/headers"
    status=$(curl --silent --show-error --noproxy '*' --max-time 180 --cacert "$certificate" --request "$method" \
        --dump-header "$work/headers" --output "$work/body" --write-out '%{http_code}' \
        "${arguments[@]}" "$@" "$SALTERN_TEST_URL$path") || result=$?
    headers=$(tr -d '\r' <"$work/headers")
    body=$(tr -d '\0' <"$work/body")
    return "$result"
}

# failure_passes: true if the last request can succeed when it is sent again. A connection that the server closes, or a 408, is
# due to a slow machine only after the shortest of the server's limits.
failure_passes() {
    case $request_result in
        0) ;;
        35 | 52 | 55 | 56) ((SECONDS - request_begun >= 5)) && return ;;
        *) return 1 ;;
    esac
    case $status in
        408) ((SECONDS - request_begun >= 5)) ;;
        503)
            [[ -n $(header retry-after) &&
                $(json .code 2>/dev/null) == @(database_unavailable|overloaded|handler_timeout) ]]
            ;;
        *) false ;;
    esac
}

# json FILTER: what jq makes of the body.
json() { jq --raw-output "$1" <<<"$body"; }

# header NAME: the value of a header of the reply; nothing when it is not there.
header() { sed -n "s/^$1: //Ip" <<<"$headers"; }

# A write that was repeated may have been stored the first time: then it is not created again.
expect_status() { [[ $status == "$1" || $1$status == 201200 && $repeated == PUT ]] || fail "status $1"; }

# expect_json FILTER VALUE
expect_json() {
    local value
    value=$(json "$1") || fail "a JSON body in which $1 is $2"
    [[ $value == "$2" ]] || fail "$1 to be $2, which is $value"
}

# is_ready: true if the server is ready.
is_ready() { request GET /v1/health/ready && [[ $status == 200 ]]; }

# expect_header NAME VALUE
expect_header() { [[ $(header "$1") == "$2" ]] || fail "header $1: $2"; }

# expect_problem STATUS CODE: an RFC 9457 reply.
expect_problem() {
    expect_status "$1"
    expect_header content-type application/problem+json
    expect_json .code "$2"
}

# The interpreter of run_python. The one of python.sh has packages.
python=/usr/bin/python3

# run_python PROGRAM ARGUMENT…: a program with the common package, the address of the server and the session.
run_python() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$repository/scripts/lib SALTERN_TEST_URL=$SALTERN_TEST_URL \
        SALTERN_TEST_CERTIFICATE=$certificate SALTERN_TEST_TOKEN=$token SALTERN_TEST_EXECUTABLE=$executable "$python" "$@"
}

# on_every_loop COMMAND…: whether it succeeds so often that each of the server's loops has had its turn, for what each of them
# finds out by itself: the kernel gives a new connection to any of them.
on_every_loop() {
    # A repeated request can come to another loop.
    local _ once=yes
    for _ in {1..16}; do "$@" || return 1; done
}

# milliseconds: the time of day.
milliseconds() { date +%s%3N; }

ruler_pid=

# start_ruler: measures from here on how late the machine itself is.
start_ruler() {
    [[ -z $ruler_pid ]] || return 0
    : >"$work/ruler"
    setpriv --pdeathsig TERM /usr/bin/python3 -I "$repository/scripts/lib/traffic/ruler.py" "$work/ruler" </dev/null &
    ruler_pid=$!
    # A scenario that waits for its commands does not wait for it.
    disown "$ruler_pid"
    wait_until 180 test -s "$work/ruler" || fail "the ruler to start"
}

stop_ruler() {
    [[ -z $ruler_pid ]] || kill "$ruler_pid" 2>/dev/null || true
    ruler_pid=
}

has_measured_until() { (($(tail -n 1 "$work/ruler" | cut --delimiter ' ' --fields 1) >= $1)); }

# lateness_since MILLISECONDS [END]: by how many milliseconds the machine was late since this time of day. Needs start_ruler.
lateness_since() {
    wait_until 180 has_measured_until "$(milliseconds)" || fail "the ruler to measure"
    awk -v since="$1" -v until="${2:-0}" \
        '$1 > since && (!until || $1 - $2 < until) { late += $2 } END { print late + 0 }' "$work/ruler"
}

# is_within LIMIT BEGIN [END]: true if so many milliseconds at most have passed between two times of day, without those by which
# the machine was late. Needs start_ruler.
is_within() {
    local end=${3:-$(milliseconds)}
    ((end - $2 <= $1)) || ((end - $2 <= $1 + $(lateness_since "$2" "$end")))
}

# was_disturbed SINCE: true if the machine paused for more than a second since this time of day. An attempt that it disturbed is
# repeated. Needs start_ruler.
was_disturbed() {
    wait_until 180 has_measured_until "$(milliseconds)" || fail "the ruler to measure"
    (($(awk -v since="$1" '$1 > since && $2 > worst { worst = $2 } END { print worst + 0 }' "$work/ruler") > 1000))
}

# time_of_event EVENT: the time of day, in milliseconds, of the last line with this event in the own server's log.
time_of_event() {
    local line
    line=$(grep "\"event\":\"$1\"" "$own_home/run.log" | tail -n 1)
    [[ -n $line ]] || fail "the log to have $1"
    date --date "$(jq --raw-output .time <<<"$line")" +%s%3N
}

# signal_family SIGNAL PROCESS: to a process and all its children. Children may end meanwhile, and none starts after STOP.
signal_family() {
    local child
    kill "-$1" "$2"
    if [[ $1 == STOP ]]; then
        wait_until 180 family_is_stopped "$2" || fail "process $2 and its children to be stopped"
    else
        for child in $(pgrep --parent "$2"); do kill "-$1" "$child" 2>/dev/null || true; done
    fi
}

# family_is_stopped PROCESS: stops all children, and is true once that has happened.
family_is_stopped() {
    local process
    for process in "$1" $(pgrep --parent "$1"); do
        kill -STOP "$process" 2>/dev/null || continue
        # A stopped process, or one that has ended.
        grep --quiet '^State:[[:space:]]*[TtZX]' "/proc/$process/status" 2>/dev/null || is_gone "$process" || return 1
    done
}

# exec_with_settings [NAME=VALUE]… COMMAND…: a command with the server's own settings, but for those, in place of the shell.
exec_with_settings() {
    # shellcheck source=/dev/null
    source "$SALTERN_TEST_HOME/run.env"
    # Commands refuse settings that they do not know.
    unset "${!SALTERN_TEST_@}"
    exec env "$@"
}

with_settings() (exec_with_settings "$@")

# server_setting NAME: the value of one of these settings.
server_setting() { variable_of_run "$SALTERN_TEST_HOME" "$1"; }

# saltern ARGUMENT…: the command, talking to the server's own database.
saltern() { with_settings saltern "$@"; }

# run_command STATUS ARGUMENT…: runs the command without input; it ends with this status, and said has its output.
run_command() {
    local expected=$1 result=0
    shift
    said=$(saltern "$@" 2>&1 </dev/null) || result=$?
    ((result == expected)) || fail "saltern $* to end with $expected, not $result: $said"
}

# says TEXT: this output contains it.
says() { [[ $said == *"$1"* ]] || fail "saltern to say: $1; it said: $said"; }

# A server of the scenario's own, for what the others must not feel: signals, kills, other settings.
own_pid=
own_home=
own_port=
# The name of its database, and on a cluster what leads to it.
own_database=saltern
own_database_urls=()

# make_own_home: for a scenario that needs the folder or the port before the start.
make_own_home() {
    own_home=$(make_home)
    own_port=$(free_port)
    if is_on_cluster; then make_own_database; fi
}

# start_own_server [NAME=VALUE]…: serves from own_home, which a later start finds as it was left; what follows talks to it.
start_own_server() {
    [[ -n $own_home ]] || make_own_home
    run_from own_pid "$own_home" 180 "$executable" SALTERN_LISTEN="127.0.0.1:$own_port" "${own_database_urls[@]}" "$@"
    SALTERN_TEST_HOME=$own_home
    SALTERN_TEST_URL=$(url_of_run "$own_home")
    certificate=$own_home/tls/certificate.pem
}

# A further server with the settings of the own one.
other_pid=

# begin_other_server LOG [NAME=VALUE]…: starts it, with other values of these settings.
begin_other_server() {
    local log=$1
    : >"$log"
    exec_with_settings "${@:2}" setpriv --pdeathsig TERM "$executable" serve >>"$log" 2>&1 </dev/null &
    other_pid=$!
}

# start_other_server LOG [NAME=VALUE]…: starts it, and waits until it serves.
start_other_server() {
    begin_other_server "$@"
    expect_other_server "$1"
}

# expect_other_server LOG: waits until it serves.
expect_other_server() {
    wait_until 180 other_server_serves_or_is_gone "$1" || fail "another server to start: $(<"$1")"
    grep --quiet server_started "$1" || fail "another server to start: $(<"$1")"
}

other_server_serves_or_is_gone() { is_gone "$other_pid" || grep --quiet server_started "$1"; }

# stop_other_server: fails when it did not end cleanly.
stop_other_server() {
    end_process "$other_pid" TERM 180
    wait "$other_pid" || fail "the other server to end cleanly"
}

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
own_database_url() {
    local url
    url=$(variable_of_run "$own_home" SALTERN_DATABASE_URL)
    url=${url/saltern_app@/$1@}
    printf '%s\n' "${url%/*}/$2"
}

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
query() {
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --tuples-only --no-align --command "$1" \
        "$(server_setting SALTERN_OWNER_DATABASE_URL)"
}
