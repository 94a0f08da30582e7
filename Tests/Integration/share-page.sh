#!/usr/bin/env bash
# The page that opens shares, in a real browser; and the links that open in apps.
#
# Pictures of the page stay in .build/share-page: view them after every change of the page.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/packages.sh
source "$repository/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_packages "${browser_packages[@]}"
ensure_python_tools

fingerprint=$(openssl rand -hex 32 | sed 's/../&:/g; s/:$//')
# All the visits come from one address.
start_own_server SALTERN_RATE_LIMITS=share=100000/1000,share-miss=100000/1000,account=100000/1000 \
    SALTERN_APPLE_APP_IDS=A1B2C3D4E5.org.example.notes SALTERN_ANDROID_APPS="org.example.notes=$fingerprint" \
    SALTERN_APP_STORE_ID=123456789
register ada
sender=$token
token=

scenario "the platforms learn which apps open links to shares, and nobody is sent elsewhere for it"
request GET /.well-known/apple-app-site-association
expect_status 200
expect_header content-type application/json
expect_json '.applinks.details[0].appIDs[0]' A1B2C3D4E5.org.example.notes
expect_json '.applinks.details[0].components[0]["/"]' '/s/*'
request GET /.well-known/assetlinks.json
expect_status 200
expect_header content-type application/json
expect_json '.[0].target.package_name' org.example.notes
expect_json '.[0].target.sha256_cert_fingerprints[0]' "${fingerprint^^}"

scenario "the page offers the app in the App Store, without the address of the page"
request GET "/s/$(openssl rand -hex 11)"
expect_status 200
expect_header content-type 'text/html; charset=utf-8'
[[ $body == *'<meta name="apple-itunes-app" content="app-id=123456789">'* ]] || fail "the banner of the App Store"

scenario "the page in a browser"
SALTERN_TEST_URL=$SALTERN_TEST_URL SALTERN_TEST_CERTIFICATE=$certificate SALTERN_TEST_TOKEN=$sender \
    SALTERN_TEST_SCREENSHOTS=$repository/.build/share-page \
    "$repository/.venv/bin/python" "$repository/Tests/Browser/share_page.py"

scenario "no id and no passphrase is in the log"
stop_own_server || fail "the server to end cleanly"
grep '^{' "$own_home/run.log" | jq --compact-output 'select(.event == "request") | del(.requestId, .accountId)' >"$work/log"
grep --quiet --fixed-strings '"route":"GET /s/{id}/{passphrase}"' "$work/log" || fail "the route's template in the log"
grep --quiet --fixed-strings '"route":"GET /v1/shares/{id}"' "$work/log" || fail "the route's template in the log"
# That of the legacy link is the only one that the server ever saw. Ids have 22 letters and digits.
if grep --fixed-strings 'Leg4cy-Key_9' "$work/log"; then fail "no passphrase in the log"; fi
if grep --extended-regexp '[0-9A-Za-z]{22}' "$work/log"; then fail "no id of a share in the log"; fi
