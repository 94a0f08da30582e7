# shellcheck shell=bash disable=SC2034,SC2154
# What scenarios of saltern-client have in common: devices, each of which is a home directory, and people with two of them.

client=${SALTERN_TEST_CLIENT:-$repository/.build/debug/saltern-client}

require_client() { [[ -x $client ]] || die "cannot execute $client: swift build --product saltern-client"; }

# The editor of all devices, and further variables as NAME=VALUE.
editor=false
device_settings=()

# device NAME ARGUMENT…: runs saltern-client in the home of a device; fills status, body (its output) and headers (its errors).
device() {
    local home=$work/$1
    shift
    mkdir --parents -- "$home"
    status=0
    env --ignore-environment HOME="$home" PATH="$PATH" EDITOR="$editor" "${device_settings[@]}" \
        "$client" "$@" >"$work/body" 2>"$work/errors" || status=$?
    body=$(tr -d '\0' <"$work/body")
    headers=$(<"$work/errors")
}

# use NAME ARGUMENT…: the same without input; it has to succeed.
use() {
    device "$@" </dev/null
    expect_status 0
}

# expect_error STATUS CODE: what saltern-client --json reports of its failure.
expect_error() {
    expect_status "$1"
    [[ $(jq --raw-output .error.code <<<"$headers") == "$2" ]] || fail "the error $2"
}

# name_account: a new userid and two passwords in $work, and the options that lead to the server and the account in where.
name_account() {
    unique ada >"$work/userid"
    echo 'correct horse battery staple' >"$work/password"
    echo 'a staple for every horse' >"$work/password-2"
    where=(--server "$SALTERN_TEST_URL" --userid "$(<"$work/userid")" --certificate "$certificate" --pin "$(pin_of "$certificate")")
}

# register_phone_and_laptop: two devices of a new account; its password is in $work/password.
register_phone_and_laptop() {
    local name word=register
    userid=$(unique ada)
    echo 'correct horse battery staple' >"$work/password"
    for name in phone laptop; do
        device "$name" "$word" --server "$SALTERN_TEST_URL" --userid "$userid" --certificate "$certificate" \
            --device "$name" --password-file "$work/password"
        expect_status 0
        word=login
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
