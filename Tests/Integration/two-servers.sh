#!/usr/bin/env bash
# Concurrent requests to two servers on one database.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server SALTERN_RATE_LIMITS=off
port=$(free_port)
: >"$work/other"
(
    # shellcheck source=/dev/null
    source "$own_home/run.env"
    for name in "${!SALTERN_TEST_@}"; do unset "$name"; done
    exec setpriv --pdeathsig TERM env "SALTERN_LISTEN=127.0.0.1:$port" SALTERN_RATE_LIMITS=off "$executable" serve
) >>"$work/other" 2>&1 </dev/null &
other=$!
# shellcheck disable=SC2317  # wait_until calls it
other_has_started() { is_gone "$other" || grep -q server_started "$work/other"; }
wait_until 180 other_has_started || fail "the other server to start"
grep -q server_started "$work/other" || fail "the other server to start: $(<"$work/other")"

scenario "of shares whose only view many want of both servers one is given, and nothing of them stays"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$repository/scripts/lib /usr/bin/python3 "$repository/Tests/Integration/last_views.py" \
    --ports "$own_port" "$port" --certificate "$certificate" --shares 80
[[ $(query 'SELECT (SELECT count(*) FROM saltern.shares) + (SELECT count(*) FROM saltern.account_shares)') == 0 ]] ||
    fail "no share to be left: $(query 'SELECT (SELECT count(*) FROM saltern.shares), (SELECT count(*) FROM saltern.account_shares)')"

end_process "$other" TERM 180
wait "$other" || fail "the other server to end cleanly"
