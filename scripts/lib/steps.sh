# shellcheck shell=bash disable=SC2030,SC2031
# Steps of a long run: a line for each, its log only when it fails, its seconds against a budget.

step_logs=
step_budgets=
steps_keep_going=
step_pid=
early_pid=
early_started=0
lane_pids=()
run_started=0

# begin_steps LOGS BUDGETS: the folder for logs, and the file with a line "SECONDS  NAME" for each step.
begin_steps() {
    step_logs=$1
    step_budgets=$2
    run_started=$SECONDS
    rm -rf -- "$step_logs"
    mkdir --parents -- "$step_logs"
    # A line "SECONDS BUDGET NAME" for each step that passed, in the order in which they ended.
    : >"$step_logs/passed"
    # The name of each step that failed, and of each that this machine cannot run, with the reason.
    : >"$step_logs/failed"
    : >"$step_logs/skipped"
}

# keep_going: the steps after a failed one run, too, and end_steps fails.
keep_going() { steps_keep_going=yes; }

# budget_of NAME: the seconds of a step; a step without a budget is an error.
budget_of() {
    awk -v name="$1" '!/^#/ { seconds = $1; sub(/^ *[0-9]+ +/, ""); if ($0 == name) { print seconds; found = 1 } }
        END { exit !found }' "$step_budgets" || die "no budget for '$1' in $step_budgets"
}

log_of() { printf '%s/%s.log\n' "$step_logs" "${1//[^A-Za-z0-9]/-}"; }

# step NAME COMMAND…: runs it, or ends the script with the tail of its log. A function runs in a subshell of its own, so
# that it stops at its first failure. Everything it starts is one process group, so that end_step can end it all.
step() {
    local name=$1 started=$SECONDS budget log
    shift
    budget=$(budget_of "$name")
    log=$(log_of "$name")
    printf '%-44s' "$name"
    set -m
    "$@" </dev/null >"$log" 2>&1 &
    step_pid=$!
    set +m
    await_step "$name" "$started" "$budget" "$log"
}

# skip_step NAME REASON: for a step that this machine cannot run. The end of the run repeats it.
skip_step() {
    budget_of "$1" >/dev/null
    printf '%-44snot run: %s\n' "$1" "$2"
    printf '%s: %s\n' "$1" "$2" >>"$step_logs/skipped"
}

# begin_early COMMAND…: starts the command of step_early with the lowest priority.
begin_early() {
    early_started=$SECONDS
    set -m
    (renice --priority 19 --pid "$BASHPID" >/dev/null && "$@") </dev/null >"$step_logs/early.log" 2>&1 &
    early_pid=$!
    set +m
}

# step_early NAME: waits for the command of begin_early, which is a step of this name.
step_early() {
    local budget log
    budget=$(budget_of "$1")
    log=$(log_of "$1")
    printf '%-44s' "$1"
    mv -- "$step_logs/early.log" "$log"
    step_pid=$early_pid
    early_pid=
    await_step "$1" "$early_started" "$budget" "$log"
}

# begin_lane FUNCTION: runs its steps beside the following ones, until join_lanes. A lane ends at its first failure.
begin_lane() {
    (
        trap end_step EXIT
        trap 'exit 143' TERM
        early_pid=
        lane_pids=()
        "$@"
    ) >"$step_logs/lane-${#lane_pids[@]}.log" 2>&1 &
    lane_pids+=("$!")
}

# join_lanes: waits for the lanes in their order and prints their lines.
join_lanes() {
    local lane status
    for lane in "${!lane_pids[@]}"; do
        status=0
        wait "${lane_pids[lane]}" || status=$?
        cat -- "$step_logs/lane-$lane.log"
        ((status == 0)) || exit "$status"
    done
    lane_pids=()
}

# await_step NAME STARTED BUDGET LOG: waits for the running step and prints its result.
await_step() {
    local name=$1 started=$2 budget=$3 log=$4 status=0 shell=$BASHPID before seconds
    before=$(children_seconds "$shell")
    wait "$step_pid" || status=$?
    step_pid=
    seconds=$((SECONDS - started))
    if ((status != 0)); then
        printf 'FAILED  %4d s\n\n' "$seconds"
        # The cause may be far above the end.
        grep -E '✘|(^|[ :])error:' "$log" | head -n 20 || true
        printf '\n'
        tail -n 40 -- "$log"
        printf '\n%s failed (status %d; the whole log: %s)\n' "$name" "$status" "$log"
        printf '%s\n' "$name" >>"$step_logs/failed"
        [[ -z $steps_keep_going ]] || return 0
        printf '%d steps passed, 1 failed\n' "$(steps_passed)"
        exit 1
    fi
    printf '%d %d %s\n' "$seconds" "$budget" "$name" >>"$step_logs/passed"
    printf 'ok  %4d s of %4d, %4d s of CPU\n' "$seconds" "$budget" $(($(children_seconds "$shell") - before))
    # The test runner's own counts.
    grep -E '(Test run with|^[0-9]+ (passed|scenarios)|tests? passed)' "$log" | tail -n 3 | sed 's/^/    /' || true
    grep --text '^repeated: ' "$log" | sed 's/^/    /' || true
}

steps_passed() { wc --lines <"$step_logs/passed"; }

# children_seconds SHELL: the seconds of CPU of the ended children of the shell.
children_seconds() {
    awk '{ sub(/.*\) /, ""); printf "%.0f", ($14 + $15) / ticks }' ticks="$(getconf CLK_TCK)" "/proc/$1/stat"
}

# end_step: ends the running steps; for the trap of the script.
end_step() {
    local pid
    for pid in $step_pid $early_pid; do
        kill -s TERM -- "-$pid" 2>/dev/null || true
    done
    for pid in "${lane_pids[@]}"; do end_process "$pid" TERM 60; done
}

# end_steps NAME: prints the total, which has a budget under this name, and names what is above its budget, was not run or
# failed. A slow machine fails no run.
end_steps() {
    local total=$((SECONDS - run_started)) budget
    budget=$(budget_of "$1")
    printf '\n'
    while read -r seconds allowed name; do
        ((seconds <= allowed)) || printf 'above its budget: %s, %d s of %d\n' "$name" "$seconds" "$allowed"
    done < <(cat -- "$step_logs/passed" && printf '%d %d %s\n' "$total" "$budget" "$1")
    sed 's/^/not run: /' "$step_logs/skipped"
    sed 's/^/failed: /' "$step_logs/failed"
    printf '%s: %d s of %d\n%d steps passed, %d failed, %d not run\n' "$1" "$total" "$budget" "$(steps_passed)" \
        "$(wc --lines <"$step_logs/failed")" "$(wc --lines <"$step_logs/skipped")"
    [[ ! -s $step_logs/failed ]]
}
