#!/usr/bin/env bash
# saltern-client and long content: the memory of get, put, import and export for any length, and a download that is cut off
# repeatedly.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client

# device NAME ARGUMENT…: runs saltern-client in the home of a device, without input; fills status, output, headers (its errors)
# and peak, its maximum memory in kB.
device() {
    mkdir --parents -- "$work/$1"
    status=0
    in_home "$1" python3 - "$client" "${@:2}" >"$work/output" 2>"$work/errors" 3>"$work/peak" <<'PYTHON' || status=$?
import os, resource, subprocess, sys

status = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode
os.write(3, str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss).encode())
sys.exit(status)
PYTHON
    headers=$(<"$work/errors")
    peak=$(<"$work/peak")
}

# expect_little WORDS: the last command has taken less memory than the file is long.
expect_little() { ((peak < 64 * 1024)) || fail "$1 to take less than 64 MB, not $((peak / 1024)) MB"; }

coproc relay (exec python3 "$repository/Tests/Integration/cutting_relay.py" "${SALTERN_TEST_URL##*:}")
read -r port <&"${relay[0]}"
# set_limit BYTES: cuts all connections after so many more; fills passed, what the server has sent since the last call.
set_limit() {
    echo "$1" >&"${relay[1]}"
    read -r passed <&"${relay[0]}"
}

register_phone_and_laptop "${SALTERN_TEST_URL%:*}:$port"
phone status --json
limit=$(jq .plan.limits.itemBytes "$work/output")

mkdir "$work/phone/files"

scenario "a download that was cut off goes on where it stopped"
head --bytes 8M /dev/urandom >"$work/phone/files/clip"
phone sync "$work/phone/files"
expect_status 0
laptop sync
expect_status 0
set_limit 5000000
laptop get clip --output "$work/clip" --json
expect_status 69
part=$(find "$work" -maxdepth 1 -name '.saltern-*.part')
[[ $headers == *"$part"* && ! -e $work/clip ]] || fail "the part to be named"
arrived=$(stat --format %s "$part")
((arrived >= 3000000 && arrived < 5000000)) || fail "the part to have what has arrived, not $arrived"
set_limit 0
laptop get clip --output "$work/clip" --json
expect_status 0
cmp "$work/clip" "$work/phone/files/clip" || fail "the clip"
[[ ! -e $part ]] || fail "no part to be left"
set_limit 0
# The chunks are in base64, in records of TLS.
((passed < (8388608 - arrived) * 14 / 10 + 400000)) || fail "the rest to be fetched alone, not $passed bytes"
# Of the clip the laptop has copies by now.
head --bytes 8M /dev/urandom >"$work/phone/files/reel"
phone sync "$work/phone/files"
expect_status 0
mkdir "$work/laptop/files"
set_limit 5000000
laptop sync "$work/laptop/files" --json
expect_status 2
set_limit 0
first=$passed
laptop sync "$work/laptop/files" --json
set_limit 0
for each in clip reel; do
    cmp "$work/laptop/files/$each" "$work/phone/files/$each" || fail "the $each in the folder"
done
((first + passed < 14000000)) || fail "no chunk to be fetched twice"

head --bytes 32M /dev/urandom >"$work/phone/files/film"
# Text, with what has to be escaped and characters that fall between two pieces.
{ yes 'Buy "salt" \ € 😀' || true; } | head --lines 800000 >"$work/phone/files/text"

scenario "a file that is too long for an item is refused before it is read"
truncate --size 8G "$work/long"
phone put "$work/long" --json
expect_error 1 no_room
expect_little put
mkfifo "$work/pipe"
yes >"$work/pipe" 2>/dev/null &
phone put "$work/pipe" --json
expect_error 1 no_room
expect_little put
[[ $(stat --format %s "$work/phone/files/film") -gt $limit ]] || fail "a film that is longer than an item"

scenario "long files go up"
phone sync "$work/phone/files"
expect_status 0
expect_little sync
laptop sync
expect_status 0

scenario "get takes the same memory for any length, in every form"
for name in film text; do
    laptop get "$name"
    expect_status 0
    expect_little get
    cmp "$work/output" "$work/phone/files/$name" || fail "the content of $name"
    laptop get "$name" --output "$work/$name"
    expect_status 0
    expect_little 'get --output'
    cmp "$work/$name" "$work/phone/files/$name" || fail "the content of $name in a file"
    [[ -z $(find "$work" -maxdepth 1 -name '.saltern-*') ]] || fail "nothing beside $name"
    laptop get "$name" --json
    expect_status 0
    expect_little 'get --json'
    [[ $name == film ]] && member=.data || member=.text
    if [[ $name == film ]]; then
        jq --join-output "$member" "$work/output" | base64 --decode
    else
        jq --join-output "$member" "$work/output"
    fi | cmp - "$work/phone/files/$name" || fail "the content of $name in JSON"
done

scenario "export and import take the same memory for any length"
laptop export "$work/everything"
expect_status 0
expect_little export
laptop import "$work/everything" --json
expect_status 0
expect_little import
[[ $(jq --compact-output . "$work/output") == '{"copies":0,"created":0,"unchanged":4}' ]] || fail "nothing to be new"
device other register --server "$SALTERN_TEST_URL" --userid "$(unique eve)" --certificate "$certificate" \
    --device other --password-file "$work/password"
expect_status 0
device other import "$work/everything" --json
expect_status 0
expect_little import
[[ $(jq .created "$work/output") == 4 ]] || fail "four items"
device other get text
cmp "$work/output" "$work/phone/files/text" || fail "the imported text"
