#!/usr/bin/env bash
# Older versions that the server keeps, with saltern-client: a device that logs in later lists, prints and restores content that
# was replaced earlier.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client

# log_in NAME WORD: registers or logs in there.
log_in() {
    device "$1" "$2" --server "$SALTERN_TEST_URL" --userid "${userid:=$(unique ada)}" --certificate "$certificate" \
        --device "$1" --password-file "$work/password"
    expect_status 0
}
# write TEXT: replaces the item, as if ten minutes had passed since the last version was kept.
write() {
    query "UPDATE saltern.items SET kept_at = NULL" >/dev/null
    device phone put --item "$id" --json <<<"$1"
    expect_status 0
    phone sync
    expect_status 0
}

start_own_server
echo 'correct horse battery staple' >"$work/password"
log_in phone register
device phone put --title list --json <<<'Buy salt.'
expect_status 0
id=$(json .id)
phone sync
write 'Buy salt and pepper.'
write 'Buy nothing.'

scenario "a new device has no version of its own, and lists, prints and restores those of the server"
log_in laptop login
laptop sync --json
expect_status 0
laptop versions "$id" --local --json
expect_json '.versions | length' 0
laptop versions "$id" --json
expect_status 0
expect_json '[.versions[].bytes] | tostring' '[21,10]'
expect_json '.versions[1].title' list
first=$(json '.versions[1].version')
laptop get "$id" --version "$first"
expect_output 'Buy salt.'
laptop restore "$id" --version "$first"
expect_status 0
laptop sync
phone sync
phone get "$id"
expect_output 'Buy salt.'

scenario "what a device has kept itself is listed once"
phone versions "$id" --json
expect_json '[.versions[].bytes] | tostring' '[13,21,10]'

scenario "a version of an item that was deleted comes back on a device that never had the item"
phone delete "$id"
expect_status 0
phone sync
log_in tablet login
device tablet versions "$id" --json </dev/null
expect_status 0
first=$(json '[.versions[] | select(.bytes == 21)][0].version')
device tablet restore "$id" --version "$first" </dev/null
expect_status 0
device tablet sync </dev/null
phone sync
phone get "$id"
expect_output 'Buy salt and pepper.'

scenario "the server shows versions to their account alone, and no sealed byte in the list"
device stranger register --server "$SALTERN_TEST_URL" --userid "$(unique eve)" --certificate "$certificate" \
    --password-file "$work/password"
device stranger versions "$id" --json </dev/null
expect_error 66 not_found

scenario "without the server the list has what is on the device, and a notice says so"
stop_own_server
laptop versions "$id" --json
expect_status 0
expect_json '.versions | length > 1' true
[[ $(jq --raw-output .notice.code <<<"$headers") == versions_not_fetched ]] || fail "the notice"
laptop versions "$id" --local --json
expect_status 0
[[ -z $headers ]] || fail "no notice"
start_own_server

scenario "a rotation ends what the server keeps; what a device has fetched stays"
query "UPDATE saltern.items SET kept_at = NULL" >/dev/null
device phone put --item "$id" --json <<<'Buy all.'
expect_status 0
phone sync
device phone rotate --password-file "$work/password" </dev/null
expect_status 0
[[ $(query "SELECT count(*) FROM saltern.replaced_contents WHERE expires_at > now()") == 0 ]] || fail "no version"
phone versions "$id" --json
expect_status 0
expect_json '.versions | length > 2' true
first=$(json '[.versions[] | select(.bytes == 10)][0].version')
phone get "$id" --version "$first"
expect_output 'Buy salt.'
