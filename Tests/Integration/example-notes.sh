#!/usr/bin/env bash
# The example app, Examples/Notes, as its program for a terminal: two devices, edits without network, conflicts, the next
# launch, lock and unlock, attachments, an older version of the app.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client
notes=${SALTERN_TEST_NOTES:-$(dirname -- "$client")/notes}
[[ -x $notes ]] || die "cannot execute $notes: SALTERN_WITH_EXAMPLE=1 swift build --product notes"

server=$SALTERN_TEST_URL
password='correct horse battery staple'
pin=$(pin_of "$certificate")

# exec_app DEVICE WORD…: the app there, in place of the shell.
exec_app() {
    exec_in_home "$1" env NOTES_FOLDER="$work/$1/notes" NOTES_DEVICE="$1" NOTES_SERVER="$server" \
        NOTES_CERTIFICATE="$certificate" NOTES_PIN="$pin" "$notes" "${@:2}"
}
# app DEVICE WORD…: runs it, with the password as its standard input; fills status, body and headers.
app() {
    mkdir --parents -- "$work/$1"
    status=0
    (exec_app "$@") <<<"$password" >"$work/body" 2>"$work/errors" || status=$?
    body=$(<"$work/body")
    headers=$(<"$work/errors")
}
phone() { app phone "$@"; expect_status 0; }
laptop() { app laptop "$@"; expect_status 0; }

# expect_sentence TEXT: what a person reads of an error.
expect_sentence() {
    [[ $status == 1 && $headers == "notes: $1" ]] || fail "the error: $1"
}
# expect_list LINE…: the list without its ids.
expect_list() {
    local expected
    expected=$(printf '%s\n' "$@")
    [[ $(cut --fields 2- <<<"$body") == "$expected" ]] || fail "the list: $expected"
}
# id_of TEXT: the id of the first line with the text, of a list.
id_of() { grep --fixed-strings --max-count=1 -- "$1" <<<"$body" | cut --fields 1; }
away() { server=https://localhost:1; }
back() { server=$SALTERN_TEST_URL; }

userid=$(unique ada)

scenario "a person signs up, and the next launch has their notes without a password"
phone sign-up "$userid"
phone add 'Buy salt.' shopping
note=$body
phone list
expect_list 'Buy salt. #shopping'
phone list home
expect_list ''
phone sync

scenario "a wrong password is a sentence, and the right one brings the notes to another device"
password=wrong app laptop log-in "$userid"
expect_sentence 'The name or the password is wrong.'
laptop log-in "$userid"
laptop list
expect_list 'Buy salt. #shopping'

scenario "without network a text that was changed here and a tag that was added there become one note"
away
phone edit "$note" 'Buy salt and pepper.'
laptop tag "$note" shopping market
app laptop sync
expect_sentence 'The server cannot be reached.'
back
phone sync
laptop sync
phone sync
for device in phone laptop; do
    "$device" list
    expect_list 'Buy salt and pepper. #shopping #market'
done

scenario "two texts of one note are both kept, and the person chooses"
phone edit "$note" 'Buy sugar.'
laptop edit "$note" 'Buy oil.'
phone sync
laptop sync
laptop list
[[ $(wc --lines <<<"$body") == 2 ]] || fail "two notes"
[[ $body == *"Buy oil."*"(this device's version of $note)"* ]] || fail "the copy to say of which note it is"
laptop keep mine "$(id_of 'Buy oil.')"
laptop sync
phone sync
phone list
expect_list 'Buy oil. #shopping #market'

scenario "a locked app shows nothing before the password, which works without network"
phone lock
phone list
expect_list ''
app phone add 'Not now.'
expect_sentence 'The vault is locked. Enter the password.'
away
password=wrong app phone unlock
expect_sentence 'The name or the password is wrong.'
phone unlock
phone list
expect_list 'Buy oil. #shopping #market'

scenario "a file of 5 MB is attached without network, and the other device reads it"
head --bytes 5000000 /dev/urandom >"$work/photo.jpg"
phone attach "$note" "$work/photo.jpg"
phone save "$note" photo.jpg "$work/photo-here.jpg"
cmp --silent "$work/photo.jpg" "$work/photo-here.jpg" || fail "the same bytes"
back
phone sync
laptop sync
laptop list
expect_list 'Buy oil. #shopping #market [photo.jpg]'
laptop save "$note" photo.jpg "$work/photo-there.jpg"
cmp --silent "$work/photo.jpg" "$work/photo-there.jpg" || fail "the same bytes"
away
laptop save "$note" photo.jpg "$work/photo-again.jpg"
back

scenario "a note of the app's first version is read, and becomes one of the second when it is changed"
printf '%s\n' "$password" >"$work/password"
use first login --server "$SALTERN_TEST_URL" --userid "$userid" --certificate "$certificate" \
    --password-file "$work/password"
device first put --collection notes --json <<<'{"body":"From the first version.","color":"red"}'
expect_status 0
first=$(json .id)
use first sync
phone sync
phone list
expect_list 'Buy oil. #shopping #market [photo.jpg]' 'From the first version.'
phone tag "$first" old
phone sync
use first sync
use first get "$first"
expect_json '[."saltern-schema", .text, .color, .tags[0]] | tostring' '[2,"From the first version.","red","old"]'

scenario "what this version cannot read is counted, and stays"
device first put --collection notes --json <<<'{"saltern-schema":9,"words":["Later"]}'
expect_status 0
use first sync
phone sync
phone list
[[ $body == *'1 notes cannot be read by this version.' ]] || fail "the unreadable note to be counted"

scenario "a list that is open hears of the other device's changes"
exec_app laptop watch </dev/null >"$work/watched" 2>&1 &
watching=$!
wait_until 180 grep --quiet 'Buy oil.' "$work/watched" || fail "the first list: $(<"$work/watched")"
phone add 'Heard at once.'
heard=$body
phone sync
wait_until 180 grep --quiet "^$heard" "$work/watched" || fail "the new note: $(<"$work/watched")"
end_process "$watching" TERM 180
wait "$watching" || true

scenario "a link opens the text in any browser"
phone share "$heard"
[[ $body == "$SALTERN_TEST_URL"/s/*#* ]] || fail "a link"
printf '%s\n' "$body" >"$work/link"
use first open --link-file "$work/link"
expect_output 'Heard at once.'

scenario "a new password ends the other devices, which lose no edit"
laptop add 'Not sent yet.'
new='battery staple for every horse'
password=$password$'\n'$new phone change-password
password=$new
app laptop sync
expect_sentence 'The session has ended. Log in again. No data on this device is lost.'
laptop log-in "$userid"
laptop sync
phone sync
phone list
[[ $body == *'Not sent yet.'* ]] || fail "the edit"

scenario "signing out refuses to lose an edit, and then removes everything from the device"
away
laptop add 'Only here.'
app laptop sign-out
expect_sentence 'One change has not reached the server yet, and would be lost.'
back
laptop sync
laptop sign-out
laptop list
expect_list ''
app laptop add 'Not now.'
expect_sentence 'No account is logged in on this device.'

scenario "the printed code sets a new password, and the account can be deleted"
phone recovery-code
code=$body
password='a third one for the horse'
laptop recover "$userid" "$code"
laptop list
[[ $body == *'Only here.'* ]] || fail "the notes"
laptop devices
[[ $(grep --count 'this$' <<<"$body") == 1 ]] || fail "this device among $body"
laptop delete-account
app phone sync
expect_sentence 'The session has ended. Log in again. No data on this device is lost.'
