#!/usr/bin/env bash
# Data sealed by other libraries is stored, returned byte for byte in every form, and opened again.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools
register ada

scenario "RNCryptor v3 and both forms of AES-256-GCM, made in Python: in and out as JSON, as octets, by the changes feed"
run_python "$repository/Tests/Integration/interop.py"

scenario "the account holds all of them, to the byte: three formats, four sizes, two ways in"
texts=$((0 + 1 + 1000 + 500000))
padded=$((16 + 16 + 1008 + 500016))
request GET /v1/account
expect_status 200
expect_json .usage.items $((3 * 4 * 2))
expect_json .usage.bytes $((2 * (padded + 4 * 66 + texts + 4 * 28 + texts + 4 * 32)))
