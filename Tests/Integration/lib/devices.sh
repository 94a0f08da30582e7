# shellcheck shell=bash disable=SC2034,SC2154
# What scenarios of saltern-client have in common: devices, each of which is a home directory, and people with two of them.

client=${SALTERN_TEST_CLIENT:-$repository/.build/debug/saltern-client}

require_client() { [[ -x $client ]] || die "cannot execute $client: swift build --product saltern-client"; }

# The editor of all devices, and further variables as NAME=VALUE.
editor=false
device_settings=()

# exec_in_home NAME COMMAND…: a command in the home of a device, in place of the shell.
exec_in_home() {
    exec env --ignore-environment HOME="$work/$1" PATH="$PATH" EDITOR="$editor" "${device_settings[@]}" "${@:2}"
}

in_home() (exec_in_home "$@")

# device NAME ARGUMENT…: runs saltern-client in the home of a device; fills status, body (its output) and headers (its errors).
device() {
    mkdir --parents -- "$work/$1"
    status=0
    in_home "$1" "$client" "${@:2}" >"$work/body" 2>"$work/errors" || status=$?
    body=$(tr -d '\0' <"$work/body")
    headers=$(<"$work/errors")
}

# Two devices that most scenarios have, without input.
phone() { device phone "$@" </dev/null; }
laptop() { device laptop "$@" </dev/null; }

# use NAME ARGUMENT…: runs saltern-client without input; it has to succeed.
use() {
    device "$@" </dev/null
    expect_status 0
}

# into_full NAME ARGUMENT…: runs saltern-client without input, and with an output that has no room; fills status and headers.
into_full() {
    status=0
    in_home "$1" "$client" "${@:2}" >/dev/full 2>"$work/errors" </dev/null || status=$?
    headers=$(<"$work/errors")
}

# settled NAME [ARGUMENT…]: syncs the folder of a device; true unless that fails.
settled() {
    device "$1" sync "$work/$1/files" --json "${@:2}" </dev/null
    [[ $status == 0 || $status == 2 ]]
}

# interrupt PROCESS STATUS FILE…: ends saltern-client by Ctrl-C; its exit status is this. A failure prints the files.
interrupt() {
    local process=$1 expected=$2 result=0
    shift 2
    end_process "$process" INT 180
    wait "$process" || result=$?
    ((result == expected)) || fail "Ctrl-C to end the command with $expected, not $result: $(cat -- "$@")"
}

# expect_error STATUS CODE: what saltern-client --json reports of its failure.
expect_error() {
    expect_status "$1"
    [[ $(jq --raw-output .error.code <<<"$headers") == "$2" ]] || fail "the error $2"
}

expect_output() { [[ $body == "$1" ]] || fail "the output: $1"; }

# name_account: a new userid, which is also in $work, two passwords there, and the options that lead to the server and the
# account in where.
name_account() {
    userid=$(unique ada)
    printf '%s' "$userid" >"$work/userid"
    echo 'correct horse battery staple' >"$work/password"
    echo 'a staple for every horse' >"$work/password-2"
    where=(--server "$SALTERN_TEST_URL" --userid "$userid" --certificate "$certificate" --pin "$(pin_of "$certificate")")
}

# register_phone_and_laptop [URL]: two devices of a new account; its password is in $work/password. The laptop uses the URL.
register_phone_and_laptop() {
    local name word=register url=$SALTERN_TEST_URL
    userid=$(unique ada)
    echo 'correct horse battery staple' >"$work/password"
    for name in phone laptop; do
        use "$name" "$word" --server "$url" --userid "$userid" --certificate "$certificate" \
            --device "$name" --password-file "$work/password"
        word=login url=${1:-$url}
    done
}

# extract_walk DOCUMENT [SED-EXPRESSION]: $work/walk has the blocks of bash that a document marks for this scenario, with the
# address and the folder of the server.
extract_walk() {
    sed -n "/^<!-- Tests\/Integration\/${0##*/} runs/,/^<!-- The end of th[a-z]* walk/p" "$repository/$1" |
        awk '/^```/ { inside = $0 == "```bash"; next } inside' |
        sed "s|https://localhost:8443|$SALTERN_TEST_URL|; s|\.saltern/|$SALTERN_TEST_HOME/|; ${2:-}" >"$work/walk"
    (($(wc --lines <"$work/walk") > 20)) || fail "to find the blocks in $1"
}

# run_walk TEXT…: runs it with the umask that people have and both programs in PATH; its output has these texts.
run_walk() {
    local text
    mkdir -- "$work/bin"
    ln -s -- "$client" "$work/bin/saltern-client"
    ln -s -- "$executable" "$work/bin/saltern"
    (umask 022 && PATH=$work/bin:$PATH exec bash -euo pipefail "$work/walk") >"$work/output" 2>&1 ||
        fail "the walk to end well: $(tail -n 20 "$work/output")"
    for text in "$@"; do
        grep --quiet --fixed-strings -- "$text" "$work/output" || fail "the walk to print '$text': $(<"$work/output")"
    done
}
