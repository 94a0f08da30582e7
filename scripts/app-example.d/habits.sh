#!/usr/bin/env bash
# Uses Examples/Habits on three devices as its user does, each command as a launch of its own.
#
#   scripts/app-example.d/habits.sh PROGRAM URL HOME FOLDER      (HOME: the server's; FOLDER: for the devices)
set -euo pipefail

# shellcheck source=scripts/lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib/common.sh"

program=$1
folder=$4
export HABITS_SERVER=$2 HABITS_CERTIFICATE=$3/tls/certificate.pem HABITS_PIN
HABITS_PIN=$(pin_of "$HABITS_CERTIFICATE")
userid=habits-$RANDOM$RANDOM@example.org
first='correct horse' second='battery staple' third='purple monkey' fourth='green lamp'

# Its standard input has the passwords, one a line.
device() { HABITS_FOLDER=$folder/$1 HABITS_DEVICE=$1 timeout 120 "$program" "${@:2}" 2>/dev/null </dev/stdin; }
phone() { device phone "$@"; }
laptop() { device laptop "$@"; }
tablet() { device tablet "$@"; }
# No server listens on this port.
without_network() { HABITS_SERVER=https://localhost:1 "$@"; }
typed() { printf '%s\n' "$@"; }

# prints WHAT EXPECTED ACTUAL
prints() {
    [[ $3 == "$2" ]] && return
    printf 'habits: %s: expected\n%s\nand not\n%s\n' "$1" "$2" "$3" >&2
    exit 1
}
# refuses WHAT PATTERN COMMAND…: the command fails with a message that matches.
refuses() {
    local output
    output=$("${@:3}") && prints "$1" "a failure" "$output"
    # shellcheck disable=SC2053  # a pattern
    [[ $output == $2 ]] || prints "$1" "$2" "$output"
}
habits_of() { "$1" list </dev/null | sed 's/ *$//'; }

# The devices of one account, and edits on both.
refuses "a first launch" "Sign up or log in." phone list </dev/null
phone sign-up "$userid" < <(typed "$first") >/dev/null
for name in Read Swim; do phone add "$name" </dev/null; done
phone keep Swim 1 </dev/null
prints "a next launch" $'Read\nSwim 1\n2 waiting' "$(habits_of phone)"
phone sync </dev/null
refuses "a wrong password" "*password is wrong*" laptop log-in "$userid" < <(typed "$second")
laptop log-in "$userid" < <(typed "$first")
phone keep Swim 2 </dev/null
laptop keep Swim 3 </dev/null
for each in phone laptop phone; do "$each" sync </dev/null; done
prints "a merge" $'Read\nSwim 1 2 3\n0 waiting' "$(habits_of phone)"
phone rename Read Books </dev/null
laptop rename Read Novels </dev/null
for each in phone laptop phone; do "$each" sync </dev/null; done
prints "a conflict" $'Books\nNovels\nSwim 1 2 3\n0 waiting' "$(habits_of phone)"
prints "its notice" conflict "$(laptop notices </dev/null | cut --delimiter : --fields 1)"
phone delete Books </dev/null
prints "a deletion" $'Novels\nSwim 1 2 3\n1 waiting' "$(habits_of phone)"
phone undelete </dev/null
prints "a deletion undone" $'Books\nNovels\nSwim 1 2 3' "$(habits_of phone | head --lines 3)"

# Without network, and killed while it writes: a habit that was reported as stored is stored.
head --bytes 3000000 /dev/urandom >"$folder/picture"
without_network phone picture Swim "$folder/picture" </dev/null >/dev/null
without_network phone save-picture Swim "$folder/read" </dev/null
cmp -- "$folder/picture" "$folder/read"
stored=()
for day in {10..19}; do
    HABITS_FOLDER=$folder/phone HABITS_DEVICE=phone HABITS_SERVER=https://localhost:1 "$program" keep Novels "$day" &
    pid=$!
    sleep "0.0$((day % 10))"
    kill -KILL "$pid" 2>/dev/null || true
    ! wait "$pid" 2>/dev/null || stored+=("$day")
done
refuses "a sync without network" "*cannot be reached*" without_network phone sync </dev/null
phone sync </dev/null
laptop sync </dev/null
laptop save-picture Swim "$folder/copied" </dev/null
cmp -- "$folder/picture" "$folder/copied"
list=$(habits_of laptop)
for day in "${stored[@]}"; do [[ $list == *Novels*" $day"* ]] || prints "after a crash" "day $day" "$list"; done

# Locked, an older copy of the store, and a store without its device key.
phone lock </dev/null
refuses "a locked vault" "*locked*" phone list </dev/null
without_network phone unlock < <(typed "$first")
phone sync </dev/null
cp --archive -- "$folder/phone" "$folder/backup"
phone keep Swim 4 </dev/null
phone sync </dev/null
rm --recursive -- "$folder/phone"
mv -- "$folder/backup" "$folder/phone"
phone keep Swim 5 </dev/null
rm -- "$folder/phone/device.key"
refuses "a store without its key" "*locked*" phone list </dev/null
phone unlock < <(typed "$first")
refuses "its session" "*session has ended*" phone sync </dev/null
phone log-in-again < <(typed "$first")
phone sync </dev/null
prints "a restored store" "Swim 1 2 3 4 5 with a picture" "$(habits_of phone | grep Swim)"

# Passwords, a lost device, and sign-out.
laptop change-password < <(typed "$first" "$second")
refuses "another session" "*session has ended*" phone sync </dev/null
phone log-in-again < <(typed "$second")
code=$(phone print-code < <(typed "$second"))
tablet recover "$userid" "$code" < <(typed "$third")
prints "a recovery" "$(habits_of phone)" "$(habits_of tablet)"
[[ $(tablet lost-device < <(typed "$third" "$fourth")) != "$code" ]]
laptop keep Swim 6 </dev/null
refuses "a sign-out" "One change*" laptop sign-out </dev/null
laptop sign-out discard </dev/null
refuses "a launch after it" "Sign up or log in." laptop list </dev/null
echo "the habits of one account"
