#!/usr/bin/env bash
# Input of saltern-client: words and variables that are not UTF-8, files that are not documents, titles that look the same, an
# editor that ends at once, a server's name in capitals; and a device key that is missing or that others can read.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client

# explains TEXT: the errors contain it.
explains() { [[ $headers == *"$1"* ]] || fail "an error with: $1"; }

echo 'correct horse battery staple' >"$work/password"
echo 'another horse' >"$work/password-2"
userid=$(unique ada)
url=${SALTERN_TEST_URL/localhost/LOCALHOST}

scenario "a server's name is the same in capitals"
phone register --server "$url" --userid "$userid" --certificate "$certificate" --password-file "$work/password" --json
expect_status 0
expect_json .server "$SALTERN_TEST_URL"
sed --in-place '/"server"/s/localhost/LOCALHOST/' "$work"/phone/.config/saltern-client/accounts/*.json
phone sync
expect_status 0
laptop login --server "$url" --userid "$userid" --certificate "$certificate" --password-file "$work/password" --json
expect_status 0

scenario "the version is printed, and is that of the server's program"
phone --version
expect_status 0
expect_output "saltern-client $("$executable" --version | sed 's/^saltern //')"
phone version --json
expect_json .version "$("$executable" --version | sed 's/^saltern //')"

scenario "what is not UTF-8 is refused, and nothing is stored"
phone put --title $'bad\xff' --json
expect_error 64 usage
phone put $'/tmp/bad\xff' --json
expect_error 64 usage
for variable in HOME XDG_DATA_HOME XDG_CONFIG_HOME VISUAL; do
    status=0
    headers=$(in_home phone env "$variable=$work/"$'bad\xff' "$client" list --json 2>&1) || status=$?
    expect_status 1
    explains "$variable is not UTF-8"
done
phone list --json
expect_json '.items | length' 0

scenario "titles that only look the same are two, and each is found"
composed=$'caf\u00e9'
decomposed=$'cafe\u0301'
for title in "$composed" "$decomposed"; do
    printf '%s' "$title" >"$work/text"
    device phone put --title "$title" --json <"$work/text"
    expect_status 0
done
for title in "$composed" "$decomposed"; do
    phone get "$title"
    expect_output "$title"
done
phone delete "$decomposed" --json
expect_status 0
phone get "$decomposed"
expect_output "$composed"
# A title in the other form is another title.
device phone put --item "$composed" --title "$composed" --json <"$work/text"
expect_status 0
device phone put --item "$composed" --title "$decomposed" --json <"$work/text"
expect_status 0
phone list --json
[[ $(jq --join-output '.items[0].title' <<<"$body") == "$decomposed" ]] || fail "the new form of the title"
phone delete "$composed"

scenario "an import names the line in which the file is wrong"
begin='{"type":"documents","version":1}'
document='{"type":"document","id":"0b1f4f7e-5d2b-4a53-9c0e-1f6d1c2b3a40","collection":"notes","text":"a"}'
end='{"type":"end","documents":1}'
# expect_line N LINE…: of a file with these lines, that one is wrong.
expect_line() {
    local line=$1
    shift
    printf '%s\n' "$@" >"$work/documents"
    phone import "$work/documents" --json
    expect_error 65 unreadable
    explains "line $line: "
}
expect_line 2 "$begin" "$document"
expect_line 5 "$begin" '' "$document" '' 'nonsense' "$end"
expect_line 1 "$document" "$end"
expect_line 4 "$begin" '' "$document" '{"type":"end","documents":2}'
printf '%s\n' "$begin" "$document" "$end" | iconv --from utf-8 --to utf-16 >"$work/documents"
phone import "$work/documents" --json
expect_error 65 unreadable
explains 'line 1: it is not UTF-8'
printf '\n%s\r\n\n%s\n%s\n\n' "$begin" "$document" "$end" >"$work/documents"
phone import "$work/documents" --json
expect_json .created 1
# A pipe is read, too.
printf '%s\n' "$begin" "$document" "$end" >"$work/documents"
device phone import /dev/stdin --json <"$work/documents"
expect_json .unchanged 1

scenario "an editor that ends at once and has changed nothing is not passed over"
editor=true
# On a slow machine it may take longer than the second that counts as at once.
is_not_passed_over() {
    phone edit 0b1f --json
    expect_status 0
    [[ $headers == *editor_ended_at_once* ]]
}
wait_until 180 is_not_passed_over || fail "an error with: editor_ended_at_once"
# shellcheck disable=SC2016
editor='sh -c '\''echo b >"$1"'\'' sh'
phone edit 0b1f --json
expect_status 0
[[ $headers != *editor_ended_at_once* ]] || fail "nothing to be said of an editor that has saved"

scenario "a device key that others can read is named, with its mode"
key=$(find "$work/phone" -name device.key)
chmod 0644 "$key"
phone list --json
expect_error 74 file_exposed
explains "$key (mode 0644): chmod 600"
chmod 0600 "$key"
phone list
expect_status 0

scenario "without its device key, and without its session, a device still has what was not sent"
echo 'only here' >"$work/text"
device phone put --title unsent <"$work/text"
expect_status 0
rm "$key"
laptop sync
laptop devices lost phone --password-file "$work/password" --new-password-file "$work/password-2" --json
expect_status 0
phone get unsent --json
expect_error 77 locked
phone login --password-file "$work/password-2" --json
expect_error 2 unsent_changes
explains 'saltern-client unlock'
phone unlock --password-file "$work/password-2" --json
expect_error 77 wrong_credentials
phone unlock --password-file "$work/password" --json
expect_status 0
phone get unsent
expect_output 'only here'
phone sync --json
expect_error 77 session_ended
phone login --password-file "$work/password-2" --json
[[ $status == 0 || $status == 2 ]] || fail "the phone to be logged in"
phone sync
laptop sync
laptop get unsent
expect_output 'only here'

scenario "one is one"
laptop devices end --others
expect_output '1 session has ended'
laptop devices end --others
expect_output '0 sessions have ended'
