#!/usr/bin/env bash
# Concurrent requests to two servers on one database.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server SALTERN_RATE_LIMITS=off
port=$(free_port)
start_other_server "$work/other" SALTERN_LISTEN="127.0.0.1:$port"

scenario "of shares whose only view many want of both servers one is given, and nothing of them stays"
run_python "$repository/Tests/Integration/last_views.py" \
    --ports "$own_port" "$port" --certificate "$certificate" --shares 80
[[ $(query 'SELECT (SELECT count(*) FROM saltern.shares) + (SELECT count(*) FROM saltern.account_shares)') == 0 ]] ||
    fail "no share to be left: $(query 'SELECT (SELECT count(*) FROM saltern.shares), (SELECT count(*) FROM saltern.account_shares)')"

stop_other_server
