#!/usr/bin/env bash
# The JavaScript module for web pages, clients/web/saltern.js: in Deno against a server and beside the kit, and its example
# page in Chromium, which another origin serves.
# Deno needs all permissions for files below /dev, where the tests may have their temporary folder.
if [[ ${TMPDIR:-} == /dev/* ]]; then export TMPDIR=/tmp; fi
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/packages.sh
source "$repository/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

umask 077
ensure_packages "${browser_packages[@]}"
ensure_python_tools
require_client

# The origin of the example page.
page_port=$(free_port)
start_own_server SALTERN_RATE_LIMITS=login=10000/1000,registration=10000/1000 \
    SALTERN_ALLOWED_ORIGINS="https://localhost:$page_port"

name_account

# in_deno COMMAND: a part of Tests/Web/account_deno.js.
in_deno() {
    SALTERN_TEST_URL=$SALTERN_TEST_URL run_deno run --cert "$certificate" --allow-net=localhost --allow-env=SALTERN_TEST_URL \
        --allow-read="$work" --allow-write="$work" "$repository/Tests/Web/account_deno.js" "$1" "$work"
}

scenario "the page opens what the kit has written, and the kit what the page has written and shared"
use laptop register "${where[@]}" --password-file "$work/password"
printf 'Buy salt.' >"$work/shopping"
use laptop put "$work/shopping" --title shopping
use laptop sync
use laptop share shopping --views 2 --json
json .url >"$work/link-of-kit"
in_deno life
use laptop sync
use laptop get shopping
expect_output 'Buy salt and pepper.'
use laptop get 'from the page'
[[ $body == 'Käse 🧂Käse'* && $(printf %s "$body" | wc --bytes) == 200000 ]] || fail "the item of the page"
use laptop open --link-file "$work/link-of-page"
expect_output Red.

scenario "a page gets a key that another device has added, and refuses older keyrings"
in_deno keyrings

scenario "the example page in Chromium, and the vectors"
printf 'Buy oil.' >"$work/oil"
use laptop put "$work/oil" --title oil
use laptop sync
SALTERN_TEST_URL=$SALTERN_TEST_URL SALTERN_TEST_CERTIFICATE=$certificate SALTERN_TEST_WORK=$work \
    SALTERN_TEST_PAGE_PORT=$page_port "$repository/.venv/bin/python" "$repository/Tests/Browser/web_page.py"
use laptop sync
use laptop get 'written in Chromium'
expect_output 'Grüße aus Chromium'

scenario "a log-in with a second factor asks for a code, and again for the next one"
use laptop second-factor begin --password-file "$work/password" --json
secret=$(json .secret)
confirm_now() {
    unused_code "$secret" >"$work/code"
    laptop second-factor confirm --code-file "$work/code" --json
}
expect_in_time 0 confirm_now
{ one_time_code "$secret" 3600 && json '.recoveryCodes[0]'; } >"$work/codes"
in_deno totp
