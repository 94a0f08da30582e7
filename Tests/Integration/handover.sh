#!/usr/bin/env bash
# One server takes over from another while clients go on.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# Its database and settings are what the others have as well; it is not taken over from.
start_own_server SALTERN_RATE_LIMITS=off
port=$(free_port)
handover=$own_home/handover

# next_server LOG [NAME=VALUE…]: starts another server with the settings of the first, and waits until it serves.
next_server() {
    local log=$1
    shift
    (
        # shellcheck source=/dev/null
        source "$own_home/run.env"
        for name in "${!SALTERN_TEST_@}"; do unset "$name"; done
        exec setpriv --pdeathsig TERM env "SALTERN_LISTEN=127.0.0.1:$port" "SALTERN_HANDOVER_SOCKET=$handover" \
            SALTERN_RATE_LIMITS=off "$@" "$executable" serve
    ) >"$log" 2>&1 </dev/null &
    next=$!
    next_has_started() { is_gone "$next" || grep -q server_started "$log"; }
    wait_until 60 next_has_started || fail "the next server to start: $(cat "$log")"
    grep -q server_started "$log" || fail "the next server to start: $(cat "$log")"
}

scenario "a server that is started beside another takes over, and no request of 2,000 fails"
register ada
servers=()
next_server "$work/server-2" SALTERN_LOOPS=2
servers+=("$next")
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$repository/scripts/lib /usr/bin/python3 "$repository/Tests/Integration/handover.py" \
    --port "$port" --certificate "$certificate" --token "$token" --requests 2000 --go "$work/go" >"$work/client" 2>&1 &
client=$!
wait_until 60 test -e "$work/go" || fail "the clients to begin"
for loops in 1 3; do
    next_server "$work/server-$loops" SALTERN_LOOPS=$loops
    servers+=("$next")
done
touch "$work/enough"
wait "$client" || fail "every request to be answered: $(cat "$work/client")"
tail -n 1 "$work/client" >&2

scenario "those that were taken over from end by themselves"
for gone in "${servers[@]:0:2}"; do
    wait_until 60 is_gone "$gone" || fail "server $gone to end"
    wait "$gone" || fail "server $gone to end with 0"
done
grep -q '"event":"server_taken_over"' "$work/server-2" || fail "the server to say so"
is_gone "$next" && fail "the last one to go on"

scenario "the last one ends as ever, and nobody is at the path"
kill -TERM "$next"
wait "$next" || fail "it to end with 0"
[[ ! -e $handover ]] || fail "the path to be free"
