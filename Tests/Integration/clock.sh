#!/usr/bin/env bash
# A node whose clock is five minutes ahead behaves like the others, because everything uses the database's clock.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools
faketime=$(find /usr/lib -name libfaketimeMT.so.1 -print -quit)
[[ -n $faketime ]] || die "libfaketime is not installed"
keeper=

# shellcheck disable=SC2317  # the end of the scenario calls it
end_keeper() { [[ -z $keeper ]] || end_process "$keeper" TERM 10; }
at_end=(end_keeper)

# Certificate, keys and schema by the right clock.
start_own_server
stop_own_server

# The server alone has the wrong one: not its PostgreSQL, nor curl. The library would make its shared memory itself, and by
# noting that in the environment move what Swift finds its arguments by; so somebody else makes it.
# shellcheck disable=SC2016  # the shell within expands it
faketime -m --exclude-monotonic -f +300s sh -c 'echo "$$ $FAKETIME_SHARED"; exec sleep 3600' >"$work/shared" &
wait_until 180 test -s "$work/shared" || die "faketime did not start"
read -r keeper shared <"$work/shared"
mkdir -- "$work/ahead"
cat >"$work/ahead/saltern" <<EOF
#!/bin/sh
export LD_PRELOAD=$faketime FAKETIME=+300s FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_SHARED="$shared"
exec $executable "\$@"
EOF
chmod 0755 -- "$work/ahead/saltern"
executable=$work/ahead/saltern
metrics_port=$(free_port)
start_own_server "SALTERN_METRICS_LISTEN=127.0.0.1:$metrics_port"

scenario "it says so, in the log and in a metric"
wait_until 180 grep --quiet '"event":"clock_far_off"' "$own_home/run.log" || fail "the log to tell of the clock"
difference=$(curl --silent --noproxy '*' "http://127.0.0.1:$metrics_port/metrics" |
    sed -n 's/^saltern_clock_difference_seconds \([0-9]*\)\..*/\1/p')
((difference >= 295 && difference <= 305)) || fail "about 300 seconds of difference, not $difference"

scenario "what it stores has the database's time"
register ada
[[ $(query "SELECT bool_and(abs(extract(epoch FROM now() - created_at)) < 150) FROM saltern.sessions") == t ]] ||
    fail "the session to have begun now"

scenario "one-time codes are good"
request POST /v1/account/totp "$(proof)"
expect_status 201
secret=$(json .secret)
confirm_now() { request POST /v1/account/totp/confirm "{\"totp\":\"$(one_time_code "$secret")\"}"; }
log_in_now() {
    try_log_in "\"totp\":\"$(unused_code "$secret")\""
}
expect_in_time 200 confirm_now
token=
expect_in_time 201 log_in_now

scenario "nobody is kept waiting for longer than a minute"
for number in {1..20}; do
    request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$(random_base64 32)\"}"
    # On a slow machine the delay may be over before the next guess comes.
    ((number < 12)) || [[ $status == 401 ]] || break
done
expect_problem 429 too_many_attempts
[[ $(query "SELECT bool_and(blocked_until <= now() + interval '61 seconds') FROM saltern.failed_attempts") == t ]] ||
    fail "no block to end later than in a minute"

scenario "nothing is purged while nobody knows which clock is right"
run_command 1 purge
says clock
