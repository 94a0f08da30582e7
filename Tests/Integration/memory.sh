#!/usr/bin/env bash
# Keys, tokens and codes are in the server's memory while a request is answered, and nowhere in it afterwards: neither in
# freed memory nor in a buffer that is used again.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server SALTERN_RATE_LIMITS=login=10000/1000,registration=10000/1000,lookup=10000/1000

scenario "after 50 log-ins and every other use of a secret, none is left in the memory of the server"
# The server's memory is its own: only root may read it.
run_python "$repository/Tests/Integration/memory.py" "$SALTERN_TEST_URL" "$certificate" "$(own_server_process)" \
    "${SALTERN_TEST_ROUNDS:-10}"
