# shellcheck shell=bash disable=SC2034,SC2154
# A throw-away Saltern for tests and measurements: scripts/run on a free port, with a SALTERN_HOME of its own.

throwaway_pid=
throwaway_home=
throwaway_url=
# The folder that end_with_throwaway deletes.
work=

# make_home: prints a new folder for SALTERN_HOME. PostgreSQL's system user has to pass through it.
make_home() {
    local made
    made=$(mktemp --directory --tmpdir saltern-home-XXXXXX) && chmod 0711 -- "$made" && printf '%s\n' "$made"
}

# run_from VARIABLE HOME SECONDS EXECUTABLE [NAME=VALUE]…: scripts/run, which is ready within this time. VARIABLE has its process
# before that, so that a trap can end it. Nothing of the caller's own SALTERN_* variables reaches it.
run_from() {
    local -n process_of_run=$1
    local from=$2 seconds=$3 executable_of_run=$4 name clean=()
    shift 4
    for name in "${!SALTERN_@}"; do
        clean+=(--unset "$name")
    done
    : >"$from/run.log"
    setpriv --pdeathsig TERM env "${clean[@]}" SALTERN_HOME="$from" "$@" \
        "$repository/scripts/run" --executable "$executable_of_run" </dev/null >>"$from/run.log" 2>&1 &
    process_of_run=$!
    if ! wait_until "$seconds" run_is_ready_or_gone "$process_of_run" "$from" || is_gone "$process_of_run"; then
        tail -n 40 "$from/run.log" >&2
        die "the server did not start"
    fi
}

run_is_ready_or_gone() { is_gone "$1" || grep -q '^ready ' "$2/run.log"; }

# url_of_run HOME
url_of_run() { sed -n 's/^ready //p' "$1/run.log"; }

# variable_of_run HOME NAME: the value of a variable in run.env.
variable_of_run() (
    # shellcheck source=/dev/null
    source "$1/run.env"
    printf '%s\n' "${!2}"
)

# start_throwaway EXECUTABLE [NAME=VALUE]…
start_throwaway() {
    throwaway_home=$(make_home)
    run_from throwaway_pid "$throwaway_home" 420 "$1" SALTERN_LISTEN="127.0.0.1:$(free_port)" "${@:2}"
    throwaway_url=$(url_of_run "$throwaway_home")
}

# stop_throwaway_at_end: the end of the script stops the server and deletes the folder in work.
stop_throwaway_at_end() {
    trap end_with_throwaway EXIT
    trap 'exit 130' INT TERM HUP
}

# shellcheck disable=SC2317  # the trap calls it
end_with_throwaway() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    [[ -z $work ]] || rm -rf -- "$work"
    stop_throwaway || status=1
    exit "$status"
}

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
