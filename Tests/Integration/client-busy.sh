#!/usr/bin/env bash
# A store that another process uses: commands wait for it, end with status 75, and do not change it.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client
name_account

# hold STORE MARK: another process that uses a store, from when the file MARK exists.
hold() {
    setpriv --pdeathsig TERM python3 - "$1" "$2" <<'PYTHON' &
import pathlib, sqlite3, sys, time

store = sqlite3.connect(sys.argv[1])
store.execute("PRAGMA locking_mode = EXCLUSIVE")
store.execute("BEGIN EXCLUSIVE")
pathlib.Path(sys.argv[2]).touch()
time.sleep(600)
PYTHON
    holders+=($!)
    wait_until 180 test -e "$2" || fail "the store $1 to be held"
}
holders=()

# finds_it_busy NAME ARGUMENT…: saltern-client on a device ends with 75 and its code.
finds_it_busy() {
    local name=$1 ended=0
    shift
    in_home "$name" "$client" "$@" --json </dev/null >"$work/$name.output" 2>"$work/$name.errors" || ended=$?
    if [[ $ended != 75 ]] || ! grep --quiet --fixed-strings '"store_in_use"' "$work/$name.errors"; then
        fail "$name to end with 75 store_in_use, not $ended: $(<"$work/$name.errors")"
    fi
}

scenario "a store that another process uses is waited for, and then refused; a log-in leaves it alone"
use phone register "${where[@]}" --password-file "$work/password"
stores=.local/share/saltern-client/accounts
strange=$work/strange/$stores/new
mkdir --parents "$strange"
hold "$(echo "$work/phone/$stores"/*/store.sqlite)" "$work/held"
hold "$strange/store.sqlite" "$work/held-2"
# Both wait for half a minute, at once.
finds_it_busy phone list &
listing=$!
finds_it_busy strange login --account new "${where[@]}" --password-file "$work/password"
wait "$listing"
[[ -e $strange/store.sqlite ]] || fail "the store to be there"
[[ ! -e $work/strange/.config/saltern-client/accounts/new.json ]] || fail "no profile of an account that is not here"
kill "${holders[@]}"
wait "${holders[@]}" 2>/dev/null || true
use phone list
