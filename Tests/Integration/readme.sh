#!/usr/bin/env bash
# Runs the tutorial on the API with curl, docs/tutorials/api-with-curl.md, block by block.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# The walk talks to what scripts/run serves by default, as a person of its own.
tutorial=docs/tutorials/api-with-curl.md
extract_walk "$tutorial" "s|ada@example.org|$(unique ada)|"

scenario "every block of the tutorial runs: a wrong pin ends the conversation, and errors are as the text has them"
(($(wc -l <"$work/walk") > 60)) || fail "to find the blocks in $tutorial"
run_walk 'refused by curl: 90' '"code":"precondition_failed"' '"code":"not_encrypted"' '"code":"unauthenticated"' \
    '"sessionsEnded":1' '"kind":"credential_changed"' '"type":"end"'

scenario "the note is read back as it was written"
grep --quiet --line-regexp 'Buy salt\.' "$work/output" || fail "the opened note on a line of its own"
