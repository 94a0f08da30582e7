#!/usr/bin/env bash
# A rotation that is interrupted at any point leaves the account completely unchanged or completely rotated.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools
state=$work/state.json
progress=$work/progress

device() { run_python "$repository/Tests/Integration/rotation.py" "$@"; }

# outcome: which of the passwords opens the account, after every item was opened with it.
outcome() { device check "$state" "$progress" || fail "the account to be whole"; }

reached() { (($(grep --count "^$1" "$progress") >= ${2:-1})) || is_gone "$rotating"; }

# cut_off VICTIM STEP [COUNT [DELAY]]: kills while a rotation is under way, as soon as a step was reached so often, and so
# many seconds later; and starts everything again.
cut_off() {
    local victim=$1 step=$2 count=${3:-1} delay=${4:-0} result=0
    : >"$progress"
    device rotate "$state" "$progress" 2>"$work/rotate.errors" &
    rotating=$!
    wait_until 180 reached "$step" "$count" || fail "the rotation to get to '$step'"
    sleep "$delay"
    case $victim in
        server) kill -KILL "$(own_server_process)" ;;
        database) crash_own_database ;;
    esac
    wait "$rotating" || result=$?
    ((result == 0 || result == 3)) || fail "the rotation to succeed or to be cut off: $(cat "$work/rotate.errors")"
    if [[ $victim == database ]] && is_on_cluster; then
        wait_until 180 is_ready || fail "the server to find its database again"
    else
        wait_for_own_server 180 || true
        start_own_server
    fi
}

start_own_server
device register "$state"

scenario "a rotation that nobody disturbs swaps every item and the password"
: >"$progress"
ROTATION_ATTEMPTS=20 device rotate "$state" "$progress"
duration=$(sed -n 's/^committed //p' "$progress")
[[ $(outcome) == new ]] || fail "the new password to open the account"

scenario "killed between any two steps, everything is as it was"
for point in 'server opened 1' 'database staged 1' 'server staged 6'; do
    # shellcheck disable=SC2086  # words
    cut_off $point
    result=$(outcome)
    [[ $result == old || $(tail -n 1 "$progress") == commit* ]] || fail "the old password to open the account ($point)"
done

scenario "killed at any moment of the commit, everything is as it was or as it shall be"
outcomes=
for tenth in 2 5 8 11 15 20; do
    victim=server
    ((tenth % 5 != 0)) || victim=database
    cut_off "$victim" committing 1 "$(jq --null-input "$duration * $tenth / 10")"
    outcomes+=" $(outcome)"
done
printf 'commits of %s s, cut off: %s\n' "$duration" "${outcomes# }"

scenario "what was told to be committed is committed"
cut_off database committed
[[ $(outcome) == new ]] || fail "the new password to open the account"

scenario "nothing that was staged stays behind for longer than it can be used"
query "UPDATE saltern.rotations SET expires_at = now() - interval '1 second'" >/dev/null
saltern purge >/dev/null
[[ $(query 'SELECT count(*) FROM saltern.rotation_items') == 0 ]] || fail "no staged items"
[[ $(query 'SELECT count(*) FROM saltern.rotations') == 0 ]] || fail "no rotations"
: >"$progress"
ROTATION_ATTEMPTS=20 device rotate "$state" "$progress"
[[ $(outcome) == new ]] || fail "the account to be rotated after all that"
