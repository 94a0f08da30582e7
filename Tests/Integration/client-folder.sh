#!/usr/bin/env bash
# `saltern-client sync DIR` on two devices: two home directories with a folder each.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client

# sync_both [ARGUMENT…]: the one after the other, until each has what the other had.
sync_both() {
    local name
    for name in phone laptop phone; do
        # What was written just now counts as unfinished for two seconds.
        wait_until 180 settled "$name" "$@" || fail "$name to be in sync"
    done
}
same() { diff --recursive --exclude .saltern "$work/phone/files" "$work/laptop/files" >"$work/difference"; }
# shellcheck disable=SC2120  # wait_until gives the arguments
in_sync() {
    sync_both "$@"
    same
}

mkdir --parents "$work/phone/files/letters" "$work/laptop/files"
register_phone_and_laptop

scenario "a folder goes to another device, whatever is in it"
echo 'Dear Grace,' >"$work/phone/files/letters/grace.txt"
head --bytes 1500000 /dev/urandom >"$work/phone/files/photo.bin"
: >"$work/phone/files/empty"
printf '#!/bin/sh\n' >"$work/phone/files/run" && chmod 0700 "$work/phone/files/run"
wait_until 180 in_sync || fail "both folders to be the same: $(<"$work/difference")"
[[ -x $work/laptop/files/run ]] || fail "the executable bit to be kept"

scenario "a file is got, edited and exported as it is, also when it is long"
device laptop get photo.bin --output "$work/got.bin"
cmp "$work/got.bin" "$work/phone/files/photo.bin"
use laptop export "$work/items.ndjson"
jq --raw-output 'select(.title == "photo.bin") | .data' "$work/items.ndjson" | base64 --decode |
    cmp - "$work/phone/files/photo.bin"

scenario "a file that put replaces stays executable"
printf '#!/bin/sh\nexit 0\n' >"$work/text"
use laptop put --item run "$work/text"
wait_until 180 in_sync || fail "both folders to be the same: $(<"$work/difference")"
cmp "$work/text" "$work/phone/files/run"
[[ -x $work/phone/files/run && -x $work/laptop/files/run ]] || fail "the executable bit to be kept"

scenario "neither names nor contents are in the stores in the clear, as far as they left the folder"
[[ -d $work/laptop/.local/share && -d $work/phone/.local/share ]] || fail "the stores to be where they are looked for"
! grep --recursive --quiet 'Dear Grace' "$work/laptop/.local" "$work/phone/.local" || fail "no content in the stores"

scenario "what changes, moves or goes on one side does so on the other"
echo 'Yours, Ada' >>"$work/laptop/files/letters/grace.txt"
mv "$work/laptop/files/photo.bin" "$work/laptop/files/letters/picture.bin"
rm "$work/laptop/files/empty"
moved() { in_sync && [[ ! -e $work/phone/files/empty && -e $work/phone/files/letters/picture.bin ]]; }
wait_until 180 moved || fail "both folders to be the same: $(<"$work/difference")"
grep --quiet 'Yours, Ada' "$work/phone/files/letters/grace.txt" || fail "the change to be there"

scenario "what was changed on both sides is kept twice"
echo 'from the phone' >"$work/phone/files/letters/grace.txt"
echo 'from the laptop' >"$work/laptop/files/letters/grace.txt"
both() {
    in_sync && grep --recursive --quiet 'from the phone' "$work/laptop/files" &&
        grep --recursive --quiet 'from the laptop' "$work/phone/files"
}
wait_until 180 both || fail "both versions on both sides: $(ls -R "$work/phone/files" "$work/laptop/files")"

scenario "many deletions at once wait until somebody agrees"
for number in {1..30}; do echo "$number" >"$work/phone/files/$number.txt"; done
wait_until 180 in_sync || fail "both folders to be the same: $(<"$work/difference")"
rm "$work"/phone/files/*.txt
device phone sync "$work/phone/files" --json
expect_status 2
(($(json .heldThere) >= 30)) || fail "the deletions to be held: $body"
device laptop sync "$work/laptop/files" --json
[[ -e $work/laptop/files/7.txt ]] || fail "nothing to be deleted on the laptop"
wait_until 180 in_sync --allow-deletions || fail "both folders to be the same: $(<"$work/difference")"
[[ ! -e $work/laptop/files/7.txt ]] || fail "the files to be gone"
grep --recursive --quiet --line-regexp 7 "$work/laptop/files/.saltern/trash" || fail "the trash to have them"

scenario "deletions that wait have names, hold back nothing else, and are agreed to by direction and collection"
for number in {1..12}; do echo "file $number" >"$work/phone/files/file $number"; done
for number in {1..30}; do
    echo "$number" >"$work/note"
    use phone put "$work/note" --collection notes --title "note $number"
done
wait_until 180 in_sync || fail "both folders to be the same: $(<"$work/difference")"
mapfile -t notes < <(printf 'note %s\n' {1..20})
use phone delete "${notes[@]}"
rm "$work"/phone/files/file\ {1..8}
echo 'no deletion' >"$work/phone/files/after"
device phone sync "$work/phone/files" --json
expect_status 2
[[ $(json '.heldThereFiles | length') == 8 ]] || fail "the files to be named: $body"
device phone sync "$work/phone/files" --json --allow-deletions-here
[[ $(json '.heldThere') == 8 ]] || fail "the other direction to wait: $body"
device phone sync "$work/phone/files" --json --allow-deletions-there
[[ $(json '.deletedThere | length') == 8 ]] || fail "the files to be deleted: $body"
laptop_waits() {
    device laptop sync "$work/laptop/files" --json
    [[ -e $work/laptop/files/after && $(json '.heldItems | length') == 28 ]]
}
wait_until 180 laptop_waits || fail "the laptop to have the new file, and the deletions to wait by name: $body"
[[ $(json '[.heldItems[] | select(.title == "file 1")] | length') == 1 ]] || fail "the title: $body"
device laptop sync "$work/laptop/files"
grep --quiet 'waits: note ' <<<"$body" || fail "the names to be printed: $body"
device laptop sync "$work/laptop/files" --json --allow-deletions
[[ ! -e "$work/laptop/files/file 1" && $(json '.heldItems | length') == 20 ]] || fail "the notes to wait: $body"
device laptop sync --json
expect_status 2
use laptop sync --json --allow-deletions --collection notes
[[ $(json '.heldItems | length') == 0 ]] || fail "nothing to wait: $body"

scenario "what a program writes to a file that was displaced is in the folder"
exec {log}>>"$work/laptop/files/log"
echo 'first' >&"$log"
wait_until 180 in_sync || fail "both folders to be the same: $(<"$work/difference")"
echo 'from the phone' >"$work/phone/files/log"
displaced() { in_sync && grep --quiet 'from the phone' "$work/laptop/files/log"; }
wait_until 180 displaced || fail "the file to be displaced"
echo 'second' >&"$log"
device laptop sync "$work/laptop/files" --json
grep --quiet 'second' "$work/laptop/files/log (conflict"* || fail "the second line to be in the folder: $body"
exec {log}>&-

scenario "a program writes on to a file that becomes executable on another device"
printf 'first\n' >"$work/phone/files/script"
wait_until 180 in_sync || fail "both folders to be the same: $(<"$work/difference")"
exec {log}>>"$work/laptop/files/script"
chmod u+x "$work/phone/files/script"
executable_there() { in_sync && [[ -x $work/laptop/files/script ]]; }
wait_until 180 executable_there || fail "the executable bit to arrive"
echo 'second' >&"$log"
exec {log}>&-
wait_until 180 in_sync || fail "both folders to be the same: $(<"$work/difference")"
[[ $(<"$work/phone/files/script") == $'first\nsecond' ]] || fail "the second line to arrive"

scenario "a clock that leaps empties no trash"
before=$(find "$work/laptop/files/.saltern/trash" -type f | wc --lines)
((before > 0)) || fail "something in the trash"
if command -v faketime >"$work/faketime"; then
    status=0
    in_home laptop faketime '+40 days' "$client" sync "$work/laptop/files" >"$work/leap" 2>&1 </dev/null || status=$?
    device laptop sync "$work/laptop/files" --json
    [[ $(find "$work/laptop/files/.saltern/trash" -type f | wc --lines) == "$before" ]] ||
        fail "the trash to be as it was: $(<"$work/leap")"
    device laptop list --deleted --json
    (($(json '.items | length') > 0)) || fail "the vault's trash to be as it was: $body"
fi
wait_until 180 in_sync || fail "both folders to be the same: $(<"$work/difference")"

scenario "a folder that is not there is an error, and deletes nothing"
mv "$work/phone/files" "$work/phone/elsewhere"
device phone sync "$work/phone/files" --json
expect_error 65 unusable_folder
mv "$work/phone/elsewhere" "$work/phone/files"

scenario "a folder gets another collection without its marker; what it has stays in the one of before, too"
before=$(find "$work/phone/files" -type f -not -path '*/.saltern/*' | wc --lines)
device phone sync "$work/phone/files" --collection papers --json
expect_error 78 other_collection
rm "$work/phone/files/.saltern/folder"
device phone sync "$work/phone/files" --collection papers --allow-deletions --json
[[ $status == 0 || $status == 2 ]] || fail "the folder to be taken: $headers"
[[ $(find "$work/phone/files" -type f -not -path '*/.saltern/*' | wc --lines) == "$before" ]] || fail "every file to be there"
papers() {
    device phone sync "$work/phone/files" --collection papers --json
    device phone status --json
    [[ $(json .collections.papers) == "$before" && $(json .collections.files) == "$before" ]]
}
wait_until 180 papers || fail "each file to be in both collections: $body"
use phone sync "$work/phone/files" --collection papers --json
rm "$work/phone/files/.saltern/folder"
device phone sync "$work/phone/files" --allow-deletions --json
wait_until 180 in_sync || fail "both folders to be the same again: $(<"$work/difference")"

scenario "while a folder is watched, what is written goes to the other device by itself"
exec_in_home phone "$client" sync "$work/phone/files" --watch >"$work/watch" 2>&1 </dev/null &
phone_pid=$!
exec_in_home laptop "$client" sync "$work/laptop/files" --watch >"$work/watch-2" 2>&1 </dev/null &
laptop_pid=$!
echo 'Watch this.' >"$work/phone/files/watched.txt"
wait_until 180 grep --quiet --no-messages 'Watch this' "$work/laptop/files/watched.txt" ||
    fail "the file to arrive: $(cat "$work/watch" "$work/watch-2")"
for pid in "$phone_pid" "$laptop_pid"; do interrupt "$pid" 130 "$work/watch" "$work/watch-2"; done

scenario "where the kernel has no room to watch every folder, that is said once"
# A user namespace has a limit of its own.
# shellcheck disable=SC2016  # expanded by the shell in the namespace
exec_in_home phone unshare --user --map-root-user bash -c '
    echo 1 >/proc/sys/user/max_inotify_watches || exit 99
    exec "$0" sync "$HOME/files" --watch' "$client" >>"$work/watch-limited" 2>&1 </dev/null &
phone_pid=$!
wait_until 180 grep --quiet max_user_watches "$work/watch-limited" || fail "the limit to be named: $(<"$work/watch-limited")"
for number in {1..3}; do
    echo "$number" >"$work/phone/files/heard.txt"
    wait_until 180 grep --quiet --line-regexp 'sent: heard.txt' "$work/watch-limited" || fail "the file to go up"
    : >"$work/watch-limited"
done
! grep --quiet max_user_watches "$work/watch-limited" || fail "the limit to be named once: $(<"$work/watch-limited")"
interrupt "$phone_pid" 130 "$work/watch-limited"

scenario "while folders are watched, other commands of the account work, also many at once"
mkdir --parents "$work/phone/second"
echo 'second' >"$work/phone/second/one"
device phone sync "$work/phone/second" --collection second --json
exec_in_home phone "$client" sync "$work/phone/files" "$work/phone/second" --watch >"$work/watch-several" 2>&1 </dev/null &
phone_pid=$!
puts=()
for number in {1..30}; do
    exec_in_home phone "$client" put --title "at once $number" <<<"$number" >"$work/put-$number" 2>&1 &
    puts+=("$!")
done
for pid in "${puts[@]}"; do wait "$pid" || fail "each put to succeed: $(cat "$work"/put-*)"; done
device phone list --json
(($(json '[.items[] | select((.title // "") | startswith("at once "))] | length') == 30)) || fail "30 items: $body"
echo 'more' >"$work/phone/second/two"
echo 'more' >"$work/phone/files/while others write"
wait_until 180 grep --quiet --line-regexp 'sent: two' "$work/watch-several" || fail "the second folder: $(<"$work/watch-several")"
wait_until 180 grep --quiet --line-regexp 'sent: while others write' "$work/watch-several" ||
    fail "the first folder: $(<"$work/watch-several")"
end_process "$phone_pid" INT 180
wait "$phone_pid" || true

scenario "while long files of several watched folders are sent or fetched, other commands have the store soon"
# transfer NAME WORD: watches both folders, on a slow line, until each has moved its long file; commands work meanwhile.
transfer() {
    local pid count=0 busy=0
    exec_in_home "$1" "$client" sync "$work/$1/files" "$work/$1/second" --watch --limit-rate 150K \
        >"$work/watch-long" 2>&1 </dev/null &
    pid=$!
    until grep --quiet --line-regexp "$2: long" "$work/watch-long"; do
        device "$1" list --json
        # Where the machine stands still, the wait for the store is over before the other process can lend it.
        if [[ $status == 75 ]]; then busy=$((busy + 1)); else expect_status 0; fi
        count=$((count + 1))
        ((count < 500)) || fail "the files to be moved: $(<"$work/watch-long")"
        sleep 0.5
    done
    ((count - busy > 5)) || fail "commands while files are moved, not $count, of which $busy had no store"
    both_moved() { (($(grep --count --line-regexp "$1: long" "$work/watch-long") == 2)); }
    wait_until 180 both_moved "$2" || fail "both files: $(<"$work/watch-long")"
    interrupt "$pid" 130 "$work/watch-long"
}
mkdir "$work/laptop/second"
device laptop sync "$work/laptop/second" --collection second --json
device laptop sync "$work/laptop/files" --json
for folder in files second; do head --bytes 2500000 /dev/urandom >"$work/phone/$folder/long"; done
transfer phone sent
transfer laptop fetched
for folder in files second; do cmp "$work/phone/$folder/long" "$work/laptop/$folder/long"; done

scenario "a program that keeps a file open is heard"
exec {log}>"$work/phone/files/open"
exec_in_home phone "$client" sync "$work/phone/files" --watch >"$work/watch-open" 2>&1 </dev/null &
phone_pid=$!
wait_until 180 grep --quiet --line-regexp 'sent: open' "$work/watch-open" || fail "the file to go up: $(<"$work/watch-open")"
: >"$work/watch-open"
echo 'a line' >&"$log"
wait_until 180 grep --quiet --line-regexp 'sent: open' "$work/watch-open" || fail "the line to go up: $(<"$work/watch-open")"
end_process "$phone_pid" INT 180
wait "$phone_pid" || true
exec {log}>&-

scenario "a link is named once, and counted from then on"
ln --symbolic /etc/passwd "$work/phone/files/link"
wait_until 180 settled phone
device phone sync "$work/phone/files" --json
[[ $(json '[.warnings[] | select(.kind == "link")][0].known') == true ]] || fail "the link to be known: $body"
use phone sync "$work/phone/files"
grep --quiet --line-regexp 'left alone as before: 1; see --json' <<<"$body" || fail "the link to be counted: $body"
rm "$work/phone/files/link"

scenario "a rate limit slows down, and a malformed one is refused"
for rate in 0 1K x 5X -1 16383; do
    device phone sync --limit-rate "$rate"
    expect_status 64
done
use phone sync --limit-rate 16K

scenario "what is unsent is shown also when the session has ended"
echo 'unsent' >"$work/note"
device phone put "$work/note" --title 'written offline'
device laptop devices --json
phone_id=$(json '.devices[] | select(.name == "phone") | .id' | head --lines 1)
device laptop devices end "$phone_id"
device phone status --json
expect_status 77
[[ $(json .unsent) == 1 && $(json '.unsentItems[0].title') == 'written offline' ]] || fail "the unsent item: $body $headers"
