#!/usr/bin/env bash
# The two halves of the client kit share an account: the one on OpenSSL and libcurl, and the one for Apple's platforms, on
# stand-ins for their modules and Foundation's URLSession. What either has sealed the other one opens.
#
# On Linux, URLSession trusts no certificate but the system's, so a relay adds the TLS.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client
apple=$repository/.build/apple/debug/salternPackageTests.xctest
[[ -x $apple ]] || die "cannot execute $apple: scripts/apple builds it"

name_account

# apple TEST: runs it, with what both have in $work.
apple() {
    local passed
    SALTERN_TEST_PLAIN_URL=http://127.0.0.1:$relay_port SALTERN_TEST_FOLDER=$work timeout 900 \
        "$apple" --testing-library swift-testing --filter "SharedAccountTests.*$1" >"$work/body" 2>&1 && passed=yes
    body=$(<"$work/body")
    # A filter that matches nothing succeeds, too.
    [[ ${passed:-} == yes && $body == *'Test run with 1 test '* ]] || fail "Apple's half to pass: $1"
}

coproc relay (exec python3 "$repository/Tests/Integration/plain_relay.py" "${SALTERN_TEST_URL##*:}" "$certificate")
read -r relay_port <&"${relay[0]}"

scenario "Apple's half opens and changes what the other has made, attaches, and hears of changes"
use linux register "${where[@]}" --device linux --password-file "$work/password"
echo 'Buy salt.' >"$work/shopping"
use linux put "$work/shopping" --title shopping
use linux sync
apple 'two devices'

scenario "the other half opens what Apple's has changed and attached"
use linux sync
use linux get shopping
expect_output 'Buy pepper.'
use linux get film --output "$work/film-here"
cmp -- "$work/film" "$work/film-here" || fail "what the phone has attached"

scenario "the other half opens what Apple's has sealed for the printed code, and draws a new key, which Apple's opens"
use tablet recovery use "${where[@]}" --recovery-file "$work/code" --new-password-file "$work/password-2"
use tablet sync
use tablet get shopping
expect_output 'Buy pepper.'
use tablet rotate --password-file "$work/password-2"
apple 'after the other platform'
