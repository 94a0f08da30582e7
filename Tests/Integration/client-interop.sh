#!/usr/bin/env bash
# The kit opens data that a Python client has sealed by the documents alone, and the other way round: keyring, items, files, the
# printed code, a share.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

umask 077
ensure_python_tools
require_client

name_account

by_python() { run_python "$repository/Tests/Integration/client_interop.py" "$1" "$work"; }

# compare: what the laptop opens and what Python opens is the same.
compare() {
    rm -f -- "$work/items.ndjson"
    use laptop sync
    use laptop export "$work/items.ndjson"
    by_python read
}

scenario "the kit opens an account that Python has made: keyring, edits, titles, every length, files"
by_python make
use laptop login "${where[@]}" --password-file "$work/password"
compare
use laptop get shopping
[[ $body == 'Buy salt and pepper.' ]] || fail "the second edit"
mkdir -- "$work/here"
use laptop sync "$work/here"
diff --recursive --exclude .saltern "$work/files" "$work/here" || fail "the files that Python has sent"
use laptop open --link-file "$work/link"
[[ $body == 'Red.' ]] || fail "what Python has shared"

scenario "Python opens what the kit has written, changed, and sealed for the printed code"
printf 'Buy vinegar.' >"$work/vinegar"
use laptop put "$work/vinegar" --title vinegar
printf 'Buy salt, pepper and oil.' >"$work/shopping"
use laptop put "$work/shopping" --item shopping
openssl rand 1500000 >"$work/here/longer.bin"
use laptop sync "$work/here"
compare
use laptop rotate --password-file "$work/password"
compare
by_python recover

scenario "the code that Python has printed sets a new password, and opens everything under the rotated key"
use tablet recovery use "${where[@]}" --recovery-file "$work/code" --new-password-file "$work/password-2"
use tablet sync
use tablet get vinegar
[[ $body == 'Buy vinegar.' ]] || fail "what the laptop has written"
mv -- "$work/password-2" "$work/password"
use laptop login --password-file "$work/password"
compare
by_python recover
