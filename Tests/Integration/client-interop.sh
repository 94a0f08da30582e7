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

unique ada >"$work/userid"
echo 'correct horse battery staple' >"$work/password"
echo 'a staple for every horse' >"$work/password-2"
pin=$(openssl x509 -in "$certificate" -noout -pubkey | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary |
    openssl base64)
where=(--server "$SALTERN_TEST_URL" --userid "$(<"$work/userid")" --certificate "$certificate" --pin "sha256//$pin")

python() {
    PYTHONPATH=$repository/scripts/lib SALTERN_TEST_URL=$SALTERN_TEST_URL SALTERN_TEST_CERTIFICATE=$certificate PYTHONDONTWRITEBYTECODE=1 \
        "$repository/.venv/bin/python" "$repository/Tests/Integration/client_interop.py" "$1" "$work"
}

# device NAME ARGUMENT…: what saltern-client does there; has to succeed.
device() {
    local home=$work/home-$1
    shift
    mkdir --parents -- "$home"
    env --ignore-environment HOME="$home" PATH="$PATH" "$client" "$@" </dev/null >"$work/body" ||
        fail "saltern-client $1 to succeed"
    body=$(tr -d '\0' <"$work/body")
}

# compare: what the laptop opens and what Python opens is the same.
compare() {
    rm -f -- "$work/items.ndjson"
    device laptop sync
    device laptop export "$work/items.ndjson"
    python read
}

scenario "the kit opens an account that Python has made: keyring, edits, titles, every length, files"
python make
device laptop login "${where[@]}" --password-file "$work/password"
compare
device laptop get shopping
[[ $body == 'Buy salt and pepper.' ]] || fail "the second edit"
mkdir -- "$work/here"
device laptop sync "$work/here"
diff --recursive --exclude .saltern "$work/files" "$work/here" || fail "the files that Python has sent"
device laptop open --link-file "$work/link"
[[ $body == 'Red.' ]] || fail "what Python has shared"

scenario "Python opens what the kit has written, changed, and sealed for the printed code"
printf 'Buy vinegar.' >"$work/vinegar"
device laptop put "$work/vinegar" --title vinegar
printf 'Buy salt, pepper and oil.' >"$work/shopping"
device laptop put "$work/shopping" --item shopping
openssl rand 1500000 >"$work/here/longer.bin"
device laptop sync "$work/here"
compare
device laptop rotate --password-file "$work/password"
compare
python recover

scenario "the code that Python has printed sets a new password, and opens everything under the rotated key"
device tablet recovery use "${where[@]}" --recovery-file "$work/code" --new-password-file "$work/password-2"
device tablet sync
device tablet get vinegar
[[ $body == 'Buy vinegar.' ]] || fail "what the laptop has written"
mv -- "$work/password-2" "$work/password"
device laptop login --password-file "$work/password"
compare
python recover
