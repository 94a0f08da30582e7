#!/usr/bin/env bash
# The printed code sets a new password on a new device while one of the account's shared vaults cannot be synced: the rest is
# synced, and the exit status and the message name the vault.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client
echo 'correct horse battery staple' >"$work/password"
echo 'a staple for every horse' >"$work/password-2"
server=(--server "$SALTERN_TEST_URL" --certificate "$certificate")
ada() { device ada "$@" </dev/null; }

scenario "an account has two vaults and a printed code"
userid=$(unique ada)
ada register "${server[@]}" --userid "$userid" --password-file "$work/password"
expect_status 0
ada vault create household --as Ada --json
expect_status 0
broken=$(json .id)
ada vault create allotment --as Ada --json
expect_status 0
device ada put --title note --json <<<'Buy salt.'
device ada put --vault household --title chores --json <<<'Sweep the yard.'
device ada put --vault allotment --title seeds --json <<<'Sow leek.'
ada sync --json
expect_status 0
ada recovery create --password-file "$work/password" --json
expect_status 0
json .code >"$work/code"
ada sync --json
expect_status 0

scenario "a vault that cannot be synced fails the command after everything else"
# Two items with one revision.
query "UPDATE saltern.vault_items SET revision = 1 WHERE vault_id = '$broken'" >/dev/null
device found recovery use "${server[@]}" --userid "$userid" --recovery-file "$work/code" \
    --new-password-file "$work/password-2" --json </dev/null
expect_error 76 unexpected_reply
expect_json '[.vaults[] | [.name, .fetched > 0, .error]] | tostring' \
    '[["allotment",true,null],["household",false,"unexpected_reply"]]'
[[ $(jq '.error.messages | length' <<<"$headers") == 1 ]] || fail "one message"
[[ $(jq --raw-output '.error.messages[0]' <<<"$headers") == 'household: the server sent an unexpected reply' ]] ||
    fail "a message with the name of the vault"
device found get note </dev/null
expect_output 'Buy salt.'
device found get seeds --vault allotment </dev/null
expect_output 'Sow leek.'

scenario "the new password is set"
device tablet login "${server[@]}" --userid "$userid" --password-file "$work/password" --json </dev/null
expect_error 77 wrong_credentials
device tablet login "${server[@]}" --userid "$userid" --password-file "$work/password-2" --json </dev/null
expect_error 76 unexpected_reply
