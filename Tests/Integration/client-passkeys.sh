#!/usr/bin/env bash
# Passkeys of saltern-client on two devices, with the authenticator in software of programs that are built for tests: as a second
# factor, and to log in and unlock without userid and password, after every change of password, keys and printed code.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client
exec </dev/null
start_own_server SALTERN_PASSKEYS_RP_ID=localhost SALTERN_RATE_LIMITS=off

# plug_in [FILE]: the key of all devices from now on.
plug_in() { device_settings=(SALTERN_SOFTWARE_PASSKEYS="${1:-}"); }
plug_in "$work/key"

# opens_elsewhere: another device, new each time, logs in by the key alone and reads the note.
devices=0
opens_elsewhere() {
    device "device-$((++devices))" login "${server[@]}" --account mine --passkey --json
    expect_status 0
    expect_json .userid "$userid"
    device "device-$devices" get "$note"
    expect_status 0
    expect_output 'Buy salt.'
}

userid=$(unique ada)
server=(--server "$SALTERN_TEST_URL" --certificate "$certificate")
echo 'correct horse battery staple' >"$work/password"
echo 'a staple for every horse' >"$work/password-2"
echo 'purple monkey dishwasher' >"$work/password-3"
phone register "${server[@]}" --userid "$userid" --password-file "$work/password" --json
expect_status 0
echo 'Buy salt.' >"$work/note"
phone put "$work/note" --title Shopping --json
expect_status 0
note=$(json .id)
phone sync --json
expect_status 0

scenario "a program without the authenticator of tests says that there is no security key"
plug_in
device bare second-factor passkey list --json
expect_error 78 no_account
env --ignore-environment HOME="$work/phone" PATH="$PATH" "$client" second-factor passkey add Blue \
    --password-file "$work/password" --json >/dev/null 2>"$work/errors" </dev/null && fail "no passkey without a key"
[[ $(jq --raw-output .error.code <"$work/errors") == no_security_key ]] || fail "no_security_key: $(<"$work/errors")"
plug_in "$work/key"

scenario "a passkey is a second factor"
phone second-factor passkey add Blue --password-file "$work/password" --json
if [[ $status != 0 && $(jq --raw-output .error.code <<<"$headers") == no_security_key ]]; then
    echo "skipped: $client has no authenticator for tests"
    exit 0
fi
expect_status 0
expect_json '[.name, .logsIn, .unlocks] | tostring' '["Blue",false,false]'
phone second-factor passkey add Blue --password-file "$work/password" --json
expect_error 73 passkey_exists
device laptop login "${server[@]}" --userid "$userid" --password-file "$work/password" --json
expect_status 0
plug_in "$work/other-key"
device tablet login "${server[@]}" --userid "$userid" --password-file "$work/password" --json
expect_error 77 no_passkey
device tablet login "${server[@]}" --account mine --passkey --json
expect_error 77 no_passkey
plug_in "$work/key"
device tablet login "${server[@]}" --account mine --passkey --json
expect_error 77 wrong_passkey

scenario "it is listed, renamed and removed"
phone second-factor passkey list --json
expect_json '[.passkeys[].name] | tostring' '["Blue"]'
phone status --json
expect_json '.plan | [.secondFactor, .oneTimeCodes, .passkeys, .unlockingPasskeys] | tostring' '[true,false,1,0]'
phone status
[[ $body == *'1 passkey, of which 0 unlock'* ]] || fail "the passkey as second factor: $body"
phone second-factor passkey rename Blue Green
expect_status 0
phone second-factor passkey rename Blue Red --json
expect_error 66 not_found
phone second-factor passkey remove Green --password-file "$work/password-2" --json
expect_error 77 wrong_credentials
phone second-factor passkey remove Green --password-file "$work/password"
expect_status 0
phone second-factor passkey list --json
expect_json '.passkeys | length' 0
phone status --json
expect_json '.plan | [.secondFactor, .passkeys] | tostring' '[false,0]'

scenario "a passkey that unlocks opens the items without userid and password"
phone second-factor passkey add Blue --unlock --password-file "$work/password" --json
expect_status 0
expect_json .unlocks true
phone status --json
expect_json '.plan | [.passkeys, .unlockingPasskeys] | tostring' '[1,1]'
saltern account show "$userid" --json >"$work/account"
[[ $(jq --compact-output '[.passkeys, .unlockingPasskeys]' <"$work/account") == '[1,1]' ]] ||
    fail "the passkeys of the account: $(<"$work/account")"
opens_elsewhere

scenario "a passkey of another client no longer unlocks after a new password, and --json has the notice"
query "INSERT INTO saltern.passkeys SELECT account_id, '\\x0102', algorithm, public_key, sign_count, backup_eligible,
    backed_up, 'Other', true, '\\x01', '\\x02', created_at, NULL FROM saltern.passkeys" >/dev/null
phone password --password-file "$work/password" --new-password-file "$work/password-2" --json
expect_status 0
expect_json '[.changed, (.notices | map(.kind))] | tostring' '[true,["passkeysStoppedUnlocking"]]'
phone second-factor passkey remove Other --password-file "$work/password-2"
expect_status 0
phone password --password-file "$work/password-2" --new-password-file "$work/password" --json
expect_status 0
expect_json '.notices | length' 0
phone status --seen --json
phone status --json
expect_status 0
opens_elsewhere

scenario "it does so after a new password, a new userid, a rotation and a recovery"
phone password --password-file "$work/password" --new-password-file "$work/password-2" --json
expect_status 0
opens_elsewhere
userid=$(unique grace)
phone userid "$userid" --password-file "$work/password-2" --json
expect_status 0
opens_elsewhere
phone rotate --password-file "$work/password-2" --json
expect_status 0
opens_elsewhere
phone recovery create --password-file "$work/password-2" --json
expect_status 0
json .code >"$work/code"
device found recovery use "${server[@]}" --userid "$userid" --recovery-file "$work/code" \
    --new-password-file "$work/password-3" --json
expect_error 77 passkey_required
opens_elsewhere
device found login "${server[@]}" --userid "$userid" --password-file "$work/password-3" --json
expect_status 0

scenario "an ended session is renewed by it, and unsent changes stay"
echo 'Buy oil.' >"$work/oil"
phone put "$work/oil" --json
expect_status 0
phone sync --json
expect_error 77 session_ended
phone login --passkey --json
expect_status 0
expect_json .unsent 0

scenario "once it is restricted, it opens nothing, and is a second factor"
phone second-factor passkey restrict Blue --password-file "$work/password-2" --json
expect_error 77 wrong_credentials
for _ in 1 2; do
    phone second-factor passkey restrict Blue --password-file "$work/password-3" --json
    expect_status 0
    expect_json .restricted true
done
phone second-factor passkey list --json
expect_json '[.passkeys[].unlocks] | tostring' '[false]'
device restricted login "${server[@]}" --account mine --passkey --json
expect_error 77 passkey_does_not_unlock
device restricted login "${server[@]}" --userid "$userid" --password-file "$work/password-3" --json
expect_status 0

scenario "once it is removed, it opens nothing"
phone second-factor passkey remove Blue --password-file "$work/password-3" --json
expect_status 0
device last login "${server[@]}" --account mine --passkey --json
expect_error 77 wrong_passkey
phone sync --json
expect_status 0
