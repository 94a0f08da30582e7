# shellcheck shell=bash disable=SC2030,SC2031
# Steps of a long run: a line each, the log only when it matters.

steps_passed=0
step_logs=
step_pid=
early_pid=
early_started=0
lane_pid=

# begin_steps FOLDER: where the logs go.
begin_steps() {
    step_logs=$1
    rm -rf -- "$step_logs"
    mkdir --parents -- "$step_logs"
}

# step NAME COMMAND…: runs it, or ends the script with the tail of its log. A function runs in a subshell of its own, so
# that it stops at its first failure; and everything it starts is one process group, so that end_step can end it all.
step() {
    local name=$1 started=$SECONDS log
    shift
    log=$step_logs/$((steps_passed + 1))-${name//[^A-Za-z0-9]/-}.log
    printf '%-44s' "$name"
    set -m
    "$@" </dev/null >"$log" 2>&1 &
    step_pid=$!
    set +m
    await_step "$name" "$started" "$log"
}

# begin_early COMMAND…: begins what step_early waits for. It has only what the steps in between leave of the processors.
begin_early() {
    early_started=$SECONDS
    set -m
    (renice --priority 19 --pid "$BASHPID" >/dev/null && "$@") </dev/null >"$step_logs/early.log" 2>&1 &
    early_pid=$!
    set +m
}

# step_early NAME: the step that was begun early.
step_early() {
    local log=$step_logs/$((steps_passed + 1))-${1//[^A-Za-z0-9]/-}.log
    printf '%-44s' "$1"
    mv -- "$step_logs/early.log" "$log"
    step_pid=$early_pid
    early_pid=
    await_step "$1" "$early_started" "$log"
}

# begin_lane FUNCTION: its steps go beside those that follow, until join_lane. It ends at the first that fails.
begin_lane() {
    (
        trap end_step EXIT
        trap 'exit 143' TERM
        early_pid=
        steps_passed=0
        "$@"
        printf '%d\n' "$steps_passed" >"$step_logs/lane.passed"
    ) >"$step_logs/lane.log" 2>&1 &
    lane_pid=$!
}

# Waits for the steps that were begun beside the last ones, and shows their lines.
join_lane() {
    local status=0
    wait "$lane_pid" || status=$?
    lane_pid=
    cat -- "$step_logs/lane.log"
    ((status == 0)) || exit "$status"
    steps_passed=$((steps_passed + $(<"$step_logs/lane.passed")))
}

# await_step NAME STARTED LOG: the end of the step that is under way.
await_step() {
    local name=$1 started=$2 log=$3 status=0 shell=$BASHPID before
    before=$(children_seconds "$shell")
    wait "$step_pid" || status=$?
    step_pid=
    if ((status != 0)); then
        printf 'FAILED  %4d s\n\n' $((SECONDS - started))
        # What went wrong may lie far above the end.
        grep -E '✘|(^|[ :])error:' "$log" | head -n 20 || true
        printf '\n'
        tail -n 40 -- "$log"
        printf '\n%d steps passed, 1 failed: %s (status %d; the whole log: %s)\n' "$steps_passed" "$name" "$status" "$log"
        exit 1
    fi
    steps_passed=$((steps_passed + 1))
    printf 'ok  %4d s, %4d s of CPU\n' $((SECONDS - started)) $(($(children_seconds "$shell") - before))
    # What a test runner counted at the end stays visible.
    grep -E '(Test run with|^[0-9]+ (passed|scenarios)|tests? passed)' "$log" | tail -n 3 | sed 's/^/    /' || true
}

# children_seconds SHELL: what the processes for which it has waited have used of the processors.
children_seconds() {
    awk '{ sub(/.*\) /, ""); printf "%.0f", ($14 + $15) / ticks }' ticks="$(getconf CLK_TCK)" "/proc/$1/stat"
}

# Ends the steps that are under way, if any: for the trap of the script.
end_step() {
    local pid
    for pid in $step_pid $early_pid; do
        kill -s TERM -- "-$pid" 2>/dev/null || true
    done
    [[ -z $lane_pid ]] || end_process "$lane_pid" TERM 60
}

end_steps() { printf '\n%d steps passed, 0 failed\n' "$steps_passed"; }
