#!/usr/bin/env bash
# Runs the tutorial on the API with curl, docs/tutorials/api-with-curl.md, block by block.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# The walk talks to what scripts/run serves by default, as a person of its own.
tutorial=docs/tutorials/api-with-curl.md
extract_walk "$tutorial" "s|ada@example.org|$(unique ada)|"

# expect_output TEXT: what the walk has to have printed.
expect_output() { grep --quiet --fixed-strings -- "$1" "$work/output" || fail "the walk to print: $1"; }

scenario "every block of the tutorial runs"
(($(wc -l <"$work/walk") > 60)) || fail "to find the blocks in $tutorial"
bash -euo pipefail "$work/walk" >"$work/output" 2>&1 || fail "the walk to end well: $(tail -n 20 "$work/output")"

scenario "a wrong pin ends the conversation before it has begun"
expect_output 'refused by curl: 90'

scenario "the note is read back as it was written"
grep --quiet --line-regexp 'Buy salt\.' "$work/output" || fail "the opened note on a line of its own"

scenario "what the text says about errors is so"
expect_output '"code":"precondition_failed"'
expect_output '"code":"not_encrypted"'
expect_output '"code":"unauthenticated"'
expect_output '"sessionsEnded":1'
expect_output '"kind":"credential_changed"'
expect_output '"type":"end"'
