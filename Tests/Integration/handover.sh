#!/usr/bin/env bash
# One server takes over from another while clients continue.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# Its database and settings are what the others have as well; it is not taken over from.
start_own_server SALTERN_RATE_LIMITS=off
port=$(free_port)
handover=$own_home/handover

# begin_next_server LOG [NAME=VALUE…]: starts one that takes over.
begin_next_server() {
    begin_other_server "$1" SALTERN_LISTEN="127.0.0.1:$port" SALTERN_HANDOVER_SOCKET="$handover" "${@:2}"
    next=$other_pid
}

# next_server LOG [NAME=VALUE…]: starts one, and waits until it serves.
next_server() {
    begin_next_server "$@"
    expect_other_server "$1"
}

scenario "a server that is started beside another takes over, and no request of 2,000 fails"
register ada
servers=()
next_server "$work/server-first" SALTERN_LOOPS=2
servers+=("$next")
run_python "$repository/Tests/Integration/handover.py" \
    --port "$port" --certificate "$certificate" --token "$token" --requests 2000 --go "$work/go" >"$work/client" 2>&1 &
client=$!
wait_until 180 test -e "$work/go" || fail "the clients to begin"
for loops in 1 3 2 4; do
    next_server "$work/server-$loops" SALTERN_LOOPS=$loops
    servers+=("$next")
done
touch "$work/enough"
wait "$client" || fail "every request to be answered: $(cat "$work/client")"
tail -n 1 "$work/client" >&2

scenario "those that were taken over from end by themselves"
for gone in "${servers[@]:0:${#servers[@]}-1}"; do
    wait_until 180 is_gone "$gone" || fail "server $gone to end"
    wait "$gone" || fail "server $gone to end with 0"
done
grep -q '"event":"server_taken_over"' "$work/server-first" || fail "the server to say so"
is_gone "$next" && fail "the last one to go on"

is_answered() { curl --silent --fail --noproxy '*' --max-time 180 --cacert "$certificate" "https://localhost:$port/v1/service" >/dev/null; }

scenario "a server that is killed while it takes over, whenever that is, is no harm to the next one"
serving=$next serving_log=$work/server-$loops
for pause in 0.02 0.1 0.2 0.3 0.4 0.6; do
    begin_next_server "$work/killed"
    sleep "$pause"
    kill -KILL "$next" 2>/dev/null || true
    wait "$next" 2>/dev/null || true
    # A server killed just before it serves leaves no server; the next one still serves. The previous one logs its end a
    # moment later.
    is_answered || wait_until 180 grep -q '"event":"server_taken_over"' "$serving_log" ||
        fail "an answer, $pause s after the start"
done
next_server "$work/served-next"
wait_until 180 is_gone "$serving" || fail "the server to be taken over from"
is_answered || fail "an answer"

scenario "a server that is killed while another one asks it is taken over from all the same"
serving=$next
kill -STOP "$serving"
begin_next_server "$work/heir"
# Beside the socket that listens, which was bound to a name that begins so, the kernel has one for the connection.
is_asked() { (($(grep --count --fixed-strings " $handover" /proc/net/unix) > 1)); }
wait_until 180 is_asked || fail "the next server to ask: $(cat "$work/heir")"
kill -KILL "$serving"
wait "$serving" 2>/dev/null || true
wait_until 180 other_server_serves_or_is_gone "$work/heir"
is_answered || fail "the heir to serve: $(cat "$work/heir")"
serving=$next
next_server "$work/served-last"
wait_until 180 is_gone "$serving" || fail "the heir to be taken over from"

scenario "the last one ends as ever, and nobody is at the path"
kill -TERM "$next"
wait "$next" || fail "it to end with 0"
[[ ! -e $handover ]] || fail "the path to be free"
