# shellcheck shell=bash disable=SC2034,SC2154
# A throw-away Saltern for tests and measurements: scripts/run on a free port, with a SALTERN_HOME of its own.

throwaway_pid=
throwaway_home=
throwaway_url=

# start_throwaway EXECUTABLE [NAME=VALUE]…: nothing of the caller's own SALTERN_* variables reaches it.
start_throwaway() {
    local executable=$1 name clean=()
    shift
    for name in "${!SALTERN_@}"; do
        clean+=(--unset "$name")
    done
    throwaway_home=$(mktemp --directory --tmpdir saltern-home-XXXXXX)
    # PostgreSQL's system user has to pass through it.
    chmod 0711 -- "$throwaway_home"
    : >"$throwaway_home/run.log"
    setpriv --pdeathsig TERM env "${clean[@]}" SALTERN_HOME="$throwaway_home" \
        SALTERN_LISTEN="127.0.0.1:$(free_port)" "$@" \
        "$repository/scripts/run" --executable "$executable" </dev/null >"$throwaway_home/run.log" 2>&1 &
    throwaway_pid=$!
    if ! wait_until 420 throwaway_is_ready_or_gone || is_gone "$throwaway_pid"; then
        tail -n 40 "$throwaway_home/run.log" >&2
        die "the server did not start"
    fi
    throwaway_url=$(sed -n 's/^ready //p' "$throwaway_home/run.log")
}

throwaway_is_ready_or_gone() { is_gone "$throwaway_pid" || grep -q '^ready ' "$throwaway_home/run.log"; }

# Fails when the server did not end cleanly.
stop_throwaway() {
    local status=0
    if [[ -n $throwaway_pid ]]; then
        end_process "$throwaway_pid" TERM 180
        wait "$throwaway_pid" 2>/dev/null || status=$?
        throwaway_pid=
    fi
    if [[ -n $throwaway_home ]]; then
        rm -rf -- "$throwaway_home"
        throwaway_home=
    fi
    return "$status"
}
