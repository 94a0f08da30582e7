#!/usr/bin/env bash
# saltern-client is killed at each of the calls by which it writes, one after the other, until it comes to its end.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/toolchain.sh
source "$repository/scripts/lib/toolchain.sh"

umask 077
require_swift
client=${SALTERN_TEST_CLIENT:-$repository/.build/debug/saltern-client}
[[ -x $client ]] || die "cannot execute $client: swift build --product saltern-client"
clang -O1 -Wall -Werror -shared -fPIC -o "$work/kill.so" "$repository/Tests/Integration/kill_at_call.c"

runtime=$(mktemp --directory /dev/shm/saltern-scenario-XXXXXX)
# shellcheck disable=SC2317  # the trap calls it
remove_runtime() {
    local result=$?
    rm -rf -- "$runtime"
    (exit "$result")
    finish
}
trap remove_runtime EXIT

# device WORD… -- ARGUMENT…: what saltern-client does with these words in its environment; fills status, body and headers.
device() {
    local environment=()
    while [[ $1 != -- ]]; do
        environment+=("$1")
        shift
    done
    shift
    status=0
    body=$(env --ignore-environment HOME="$work/phone" PATH="$PATH" EDITOR="$work/editor" XDG_RUNTIME_DIR="$runtime" \
        "${environment[@]}" "$client" "$@" 2>"$work/errors" </dev/null) || status=$?
    headers=$(<"$work/errors")
}

mkdir -- "$work/phone"
echo 'correct horse battery staple' >"$work/password"
device -- register --server "$SALTERN_TEST_URL" --userid "$(unique ada)" --certificate "$certificate" \
    --password-file "$work/password"
expect_status 0

# What is long is written in several pieces by whoever does not write it at once.
version() { printf 'version %s\n%s\n' "$1" "$(yes "line of $1" | head -n 400)"; }

version 0 >"$work/old"
cp -- "$work/old" "$work/new"
device -- put --title note "$work/old"
expect_status 0

cat >"$work/editor" <<EDITOR
#!/bin/sh
cat "$work/new" >"\$1"
echo saved >"$work/saved"
EDITOR
chmod 0700 "$work/editor"

# is_kept FILE: it is what the store has, or whole in a folder that the last command has named.
is_kept() {
    local folder
    [[ $body == "$(<"$1")" ]] && return
    for folder in "$runtime"/saltern-client-*; do
        [[ $headers == *"$folder"* ]] && cmp --quiet "$1" "$folder/item.txt" && return
    done
    return 1
}

for kind in KILL_BEFORE KILL_WITHIN; do
    scenario "what an editor has saved is in the store, or where the next command says, wherever the command is killed ($kind)"
    call=0
    until ((call > 0 && status == 0)); do
        ((call += 1))
        ((call < 1000)) || fail "the command to come to its end"
        version "$kind $call" >"$work/new"
        rm -f -- "$work/saved"
        device LD_PRELOAD="$work/kill.so" KILL_PROGRAM="${client##*/}" KILL_AT="$call" "$kind=yes" -- edit note
        killed=$status
        [[ $killed == 0 || $killed == 137 ]] || fail "the command to have been killed, or not: $killed $headers"
        device -- get note
        expect_status 0
        if [[ -e $work/saved ]]; then
            is_kept "$work/new" || fail "what was saved, at call $call"
            ((killed != 0)) || [[ -z $(ls "$runtime") ]] || fail "nothing to be left"
        else
            [[ $body == "$(<"$work/old")" ]] || fail "the version of before, at call $call"
        fi
        printf '%s\n' "$body" >"$work/old"
        rm -rf -- "$runtime"/saltern-client-*
        status=$killed
    done
    echo "$call calls"
    # Of the store, of the folder and of what is overwritten in it.
    ((call > 30)) || fail "more calls than $call"
done
