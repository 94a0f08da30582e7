#!/usr/bin/env bash
# `saltern-client sync DIR`: dry runs and ignore files.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client

# sync_files NAME [ARGUMENT…]
sync_files() { device "$1" sync "$work/$1/files" --json "${@:2}"; }

# names FIELD: the names in a list of the last report, on one line.
names() { jq --raw-output ".$1 | sort | join(\" \")" <<<"$body"; }

expect_names() {
    local found
    found=$(names "$1")
    [[ $found == "$2" ]] || fail "$1 to be '$2', not '$found': $body $headers"
}

# contents NAME: what is in the folder of a device, with all times, and a digest of each of its files, also of the store.
contents() {
    (cd "$work/$1/files" && find . -printf '%p %m %s %T@\n' | sort)
    (cd "$work/$1" && find . -type f ! -name '*-shm' ! -path '*/queue/*' -print0 | sort --zero-terminated |
        xargs --null sha256sum)
}

mkdir --parents "$work/phone/files/sub" "$work/laptop/files"
register_phone_and_laptop

scenario "a dry run names what a round would do, and changes nothing"
printf '*.tmp\nbuild/\n' >"$work/phone/files/.salternignore"
mkdir "$work/phone/files/build"
for name in a b sub/c x.tmp build/out; do echo "$name" >"$work/phone/files/$name"; done
before=$(contents phone)
sync_files phone --dry-run
expect_status 0
expect_names uploaded '.salternignore a b sub/c'
expect_names ignored 'build/ x.tmp'
[[ $(json .dryRun) == true ]] || fail "a mark of the dry run: $body"
device phone sync "$work/phone/files" --dry-run
for line in 'would send: sub/c' 'ignored: x.tmp' 'ignored: build/'; do
    grep --quiet --line-regexp --fixed-strings "$line" <<<"$body" || fail "the line '$line': $body"
done
[[ $(contents phone) == "$before" ]] || fail "nothing to change: $(diff <(contents phone) <(echo "$before"))"
device phone list --collection files --json
[[ $(json '.items | length') == 0 ]] || fail "nothing to be sent: $body"
for words in '--watch' '--watch --json'; do
    # shellcheck disable=SC2086  # words
    device phone sync "$work/phone/files" --dry-run $words
    expect_status 64
done
device phone sync --dry-run
expect_status 64

scenario "what is ignored is not sent, and the ignore file is"
sync_files phone
expect_status 0
expect_names uploaded '.salternignore a b sub/c'
before=$(contents laptop)
sync_files laptop --dry-run
expect_names downloaded '.salternignore a b sub/c'
[[ $(contents laptop) == "$before" ]] || fail "nothing to change: $(diff <(contents laptop) <(echo "$before"))"
[[ ! -e $work/laptop/files/.saltern ]] || fail "no marker"
sync_files laptop
expect_names downloaded '.salternignore a b sub/c'

scenario "what becomes ignored later is deleted nowhere"
echo 'sub/' >>"$work/phone/files/.salternignore"
rm -r "$work/phone/files/sub"
rm "$work/phone/files/b"
sync_files phone --dry-run
expect_names uploaded '.salternignore'
expect_names deletedThere 'b'
sync_files phone
expect_names deletedThere 'b'
sync_files laptop
expect_names deletedHere 'b'
[[ -e $work/laptop/files/sub/c ]] || fail "the ignored file to stay"
device phone list --collection files --json
[[ $(json '[.items[].title] | sort | join(" ")') == '.salternignore a sub/c' ]] || fail "three items: $body"

scenario "a broken ignore file has a clear error, stops its folder, and loses nothing"
cp "$work/phone/files/.salternignore" "$work/rules"
printf 'ok\n[broken\n' >"$work/phone/files/.salternignore"
rm "$work/phone/files/a"
sync_files phone
expect_status 2
[[ $(json '.warnings[] | select(.kind == "ignore_file") | "\(.path) \(.fault) \(.line)"') == '.salternignore open_bracket 2' ]] ||
    fail "the fault: $body"
device phone sync "$work/phone/files"
grep --quiet --fixed-strings 'left alone (ignore_file): .salternignore: line 2: a bracket expression has no end' <<<"$body" ||
    fail "a sentence: $body"
sync_files laptop
expect_status 2
[[ -e $work/laptop/files/a ]] || fail "nothing to be deleted"
head --bytes 100000 /dev/zero | tr '\0' 'x' >"$work/phone/files/.salternignore"
sync_files phone
[[ $(json '.warnings[] | select(.kind == "ignore_file") | .fault') == file_too_long ]] || fail "the fault: $body"
cp "$work/rules" "$work/phone/files/.salternignore"
sync_files phone
expect_names deletedThere 'a'
sync_files laptop
[[ ! -e $work/laptop/files/a ]] || fail "the deletion to come when the file is corrected: $body"
expect_status 0

scenario "an empty folder is created and deleted on the other device"
mkdir --parents "$work/phone/files/empty/inner"
sync_files phone --dry-run
expect_names uploaded 'empty/inner/'
sync_files phone
expect_names uploaded 'empty/inner/'
sync_files laptop
expect_names downloaded 'empty/inner/'
[[ -d $work/laptop/files/empty/inner ]] || fail "the folder to be there"
rmdir "$work/laptop/files/empty/inner" "$work/laptop/files/empty"
sync_files laptop
expect_names deletedThere 'empty/inner/'
sync_files phone
expect_names deletedHere 'empty/inner/'
[[ ! -e $work/phone/files/empty ]] || fail "the folder to be gone"

scenario "an empty folder is neither sent nor made where the patterns leave out all that could be in it"
printf 'target/**\ncache/*\n' >>"$work/phone/files/.salternignore"
mkdir --parents "$work/phone/files/target" "$work/phone/files/cache"
sync_files phone --dry-run
expect_names uploaded '.salternignore'
expect_names ignored 'build/ cache/ target/ x.tmp'
sync_files phone
expect_names uploaded '.salternignore'
mkdir "$work/laptop/files/target"
sync_files laptop
expect_names uploaded ''
[[ ! -e $work/laptop/files/cache ]] || fail "no other folder: $(ls "$work/laptop/files")"
rmdir "$work/phone/files/target" "$work/phone/files/cache" "$work/laptop/files/target"

scenario "a second folder and a second account are refused"
mkdir "$work/phone/second"
echo 'second' >"$work/phone/second/file"
device phone sync "$work/phone/second" --json
expect_error 78 second_folder
[[ ! -e $work/phone/second/.saltern ]] || fail "no marker"
device phone sync "$work/phone/second" --json --second-folder
expect_names uploaded 'file'
use phone sync "$work/phone/second" --json
mkdir "$work/grace"
use grace register --server "$SALTERN_TEST_URL" --userid "$(unique grace)" --certificate "$certificate" \
    --device grace --password-file "$work/password"
for words in '' '--allow-deletions' '--dry-run'; do
    # shellcheck disable=SC2086  # no word, or one
    device grace sync "$work/phone/files" --json $words
    expect_error 78 folder_of_other_account
done
device grace list --json
[[ $(json '.items | length') == 0 ]] || fail "nothing to be in the other account: $body"

scenario "what a sync has taken out of a folder is listed with its path, and restored"
mkdir "$work/phone/files/letters"
for name in one two; do echo "$name" >"$work/phone/files/letters/$name"; done
sync_files phone
sync_files laptop
rm "$work/phone/files/letters/one"
echo 'changed' >"$work/phone/files/letters/two"
sync_files phone
sync_files laptop
device laptop trash "$work/laptop/files" --json
[[ $(json '[.files[] | select(.path | startswith("letters/")).path] | sort | join(" ")') == 'letters/one letters/two' ]] ||
    fail "both files: $body"
device laptop trash restore "$work/laptop/files" letters/one letters/none --json
expect_status 66
[[ ! -e $work/laptop/files/letters/one ]] || fail "nothing to be restored when a file is not in the trash"
# A file that is named twice is restored once.
use laptop trash restore "$work/laptop/files" letters/one letters/two letters/one --json
[[ $(json '.restored | join("|")') == 'letters/one|letters/two (restored)' ]] || fail "both files: $body"
grep --quiet --line-regexp one "$work/laptop/files/letters/one" || fail "the file that was deleted"
grep --quiet --line-regexp changed "$work/laptop/files/letters/two" || fail "the later version to stay"
device laptop trash restore "$work/laptop/files" letters/one --json
expect_error 66 not_found
sync_files laptop
expect_names uploaded 'letters/one letters/two (restored)'

scenario "of several files with one path each is restored by its name, also while the folder is watched"
for text in first second third; do
    echo "$text" >"$work/phone/files/letters/same"
    sync_files phone
    sync_files laptop
done
device laptop trash restore "$work/laptop/files" letters/same --json
expect_error 66 several_files
device laptop trash "$work/laptop/files" --json
mapfile -t same < <(json '.files[] | select(.path == "letters/same").name')
[[ ${#same[@]} == 2 ]] || fail "both versions: $body"
exec_in_home laptop "$client" sync "$work/laptop/files" --watch >"$work/watch" 2>&1 </dev/null &
watching=$!
use laptop trash restore "$work/laptop/files" "${same[@]}" --json
[[ $(json '.restored | sort | join("|")') == 'letters/same (restored)|letters/same (restored, 2)' ]] || fail "both: $body"
for name in '' ', 2'; do
    wait_until 180 grep --quiet --line-regexp --fixed-strings "sent: letters/same (restored$name)" "$work/watch" ||
        fail "the file to be sent: $(<"$work/watch")"
done
interrupt "$watching" 130 "$work/watch"
sync_files phone
expect_names downloaded 'letters/same (restored) letters/same (restored, 2)'
[[ $(sort "$work/phone/files/letters/same"*) == $'first\nsecond\nthird' ]] || fail "all versions"

scenario "a file is restored beside a file that has the name of its folder"
rm -r "$work/phone/files/letters"
echo 'a file' >"$work/phone/files/letters"
sync_files phone --allow-deletions
sync_files laptop --allow-deletions
use laptop trash restore "$work/laptop/files" 'letters/same (restored)' --json
[[ $(json '.restored | join("|")') == 'letters (restored)/same (restored)' ]] || fail "the other folder: $body"
[[ $(<"$work/laptop/files/letters") == 'a file' ]] || fail "the file to stay"

scenario "one of several folders that fails does not stop the others, and the output names each"
sync_files laptop
sync_files phone
echo 'one' >"$work/phone/files/of several"
several=("$work/phone/files" "$work/phone/missing" "$work/phone/second")
device phone sync "${several[@]}" --second-folder --json
expect_error 65 unusable_folder
[[ $(jq --raw-output '.error.messages | join("|")' <<<"$headers") == "$work/phone/missing: the folder cannot be opened"* ]] ||
    fail "the folder to be named: $headers"
[[ $(json .folder) == "${several[0]}"$'\n'"${several[2]}" ]] || fail "an object of each folder: $body"
[[ $(jq --slurp --raw-output '.[1].downloaded | contains(["of several"])' <<<"$body") == true ]] || fail "the last folder: $body"
echo 'two' >"$work/phone/files/of two"
device phone sync "${several[@]}" --second-folder
expect_status 65
for line in "${several[0]}:" 'sent: of two' "${several[2]}:" 'fetched: of two'; do
    grep --quiet --line-regexp --fixed-strings "$line" <<<"$body" || fail "the line '$line': $body"
done
exec_in_home phone "$client" sync "${several[@]}" --second-folder --watch --json \
    >"$work/watch" 2>"$work/watch-errors" </dev/null &
watching=$!
wait_until 180 grep --quiet "$work/phone/missing: the folder cannot be opened.*the other folders continue" "$work/watch-errors" ||
    fail "the error at once: $(<"$work/watch-errors")"
use phone list --json
echo 'three' >"$work/phone/files/of three"
has_both() {
    jq --slurp --exit-status --arg one "${several[0]}" --arg two "${several[2]}" '
        any(.folder == $one and (.uploaded | contains(["of three"])))
        and any(.folder == $two and (.downloaded | contains(["of three"])))' "$work/watch" >"$work/both"
}
wait_until 180 has_both || fail "both folders to go on: $(cat "$work/watch" "$work/watch-errors")"
# The status of the error.
interrupt "$watching" 65 "$work/watch-errors"
[[ $(tail -n 1 "$work/watch-errors" | jq --raw-output .error.code) == unusable_folder ]] || fail "the error at the end, too"

scenario "deletions that wait are named once while a folder is watched"
sync_files laptop
sync_files phone
mkdir "$work/phone/files/waiting"
for name in {1..12}; do echo "$name" >"$work/phone/files/waiting/$name"; done
sync_files phone
rm "$work/phone/files/waiting"/*
exec_in_home phone "$client" sync "$work/phone/files" --watch >"$work/watch" 2>&1 </dev/null &
watching=$!
wait_until 180 grep --quiet --line-regexp '  waits: waiting/1' "$work/watch" || fail "the names: $(<"$work/watch")"
for name in first second; do
    echo "$name" >"$work/phone/files/$name"
    wait_until 180 grep --quiet --line-regexp "sent: $name" "$work/watch" || fail "$name to be sent: $(<"$work/watch")"
done
end_process "$watching" INT 180
wait "$watching" || true
[[ $(grep --count --line-regexp '  waits: waiting/1' "$work/watch") == 1 ]] || fail "each name once: $(<"$work/watch")"
sync_files phone
expect_status 2
[[ $(json .heldThere) == 12 ]] || fail "the deletions to wait still: $body"
