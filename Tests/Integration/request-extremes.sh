#!/usr/bin/env bash
# The server accepts every request that the schemas of openapi.yaml allow.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools
start_own_server SALTERN_RATE_LIMITS=off

scenario "every field of every request is taken at the extremes of its schema"
run_python "$repository/scripts/openapi.d/extremes.py" "$repository/openapi.yaml" "$SALTERN_TEST_URL" "$certificate" \
    >"$work/said" 2>&1 || fail "the server to take what openapi.yaml allows: $(<"$work/said")"
