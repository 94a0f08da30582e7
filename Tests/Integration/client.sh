#!/usr/bin/env bash
# The command saltern-client on two devices, which are two home directories: every subcommand, its errors, and the result of
# conflicting changes.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

umask 077
ensure_python_tools
require_client
# Guesses are made here on purpose, all from one address.
limits=SALTERN_RATE_LIMITS=login=10000/1000,registration=10000/1000
start_own_server "$limits"

# An editor runs the client, too.
device_settings=(CLIENT="$client")
name_account
pin=$(pin_of "$certificate")
echo 'wrong' >"$work/wrong"

scenario "nobody is logged in, and every command says so with status 78"
for command in status list sync devices events shares logout; do
    phone "$command" --json
    expect_error 78 no_account
done

scenario "a wrong pin ends the conversation before anything is sent or remembered"
phone register --server "$SALTERN_TEST_URL" --userid "$userid" --certificate "$certificate" --pin "sha256//$(random_base64 32)" \
    --password-file "$work/password" --json
expect_error 76 pin_mismatch
phone register --server "$SALTERN_TEST_URL" --userid "$userid" --pin "$pin" --password-file "$work/password" --json
expect_error 76 untrusted_certificate
[[ -z $(find "$work/phone" -type f) ]] || fail "no file in $(find "$work/phone" -type f)"

scenario "a password that others can read is refused"
chmod 0644 "$work/password"
phone register "${where[@]}" --password-file "$work/password" --json
expect_error 74 file_exposed
chmod 0600 "$work/password"

scenario "an account is made once, and what was said is remembered"
phone register "${where[@]}" --password-file "$work/password" --device phone --json
expect_status 0
expect_json .userid "$userid"
phone register "${where[@]}" --password-file "$work/password" --json
expect_error 73 account_exists
laptop register "${where[@]}" --password-file "$work/wrong" --json
expect_error 1 userid_taken
phone status --json
expect_status 0
expect_json '[.online, .plan.name, .unsent] | tostring' '[true,"default",0]'

scenario "another server with the salt prefix of a known one is refused before it gets a password key"
coproc relay (exec python3 "$repository/Tests/Integration/cutting_relay.py" "${SALTERN_TEST_URL##*:}" 2>"$work/relay.log")
read -r -u "${relay[0]}" other_port
use visitor register --server "$SALTERN_TEST_URL" --userid "$(unique eve)" --certificate "$certificate" \
    --password-file "$work/password" --json
elsewhere=(--server "https://localhost:$other_port" --userid "$(unique mallory)" --certificate "$certificate")
device visitor register "${elsewhere[@]}" --password-file "$work/password" --json
expect_error 76 salt_prefix_in_use
use visitor register "${elsewhere[@]}" --password-file "$work/password" --accept-salt-prefix --json

scenario "a log-in is not undone by a log-out that still waits for the server"
mallory=${elsewhere[3]}
# shellcheck disable=SC2154  # coproc sets it
kill -STOP "$relay_PID"
exec_in_home visitor "$client" logout --account "$mallory" >"$work/logout" 2>&1 </dev/null &
leaving=$!
# shellcheck disable=SC2317  # wait_until calls it
is_logged_out() {
    device visitor list --account "$mallory"
    [[ $status == 78 ]]
}
wait_until 180 is_logged_out || fail "the account to be logged out"
use visitor login --account "$mallory" --server "$SALTERN_TEST_URL" --userid "$mallory" --certificate "$certificate" \
    --password-file "$work/password"
device visitor put --account "$mallory" --title kept <<<'Buy salt.'
expect_status 0
wait "$leaving" || fail "the log-out to succeed: $(<"$work/logout")"
kill -CONT "$relay_PID"
device visitor get --account "$mallory" kept
expect_output 'Buy salt.'
eval "exec ${relay[1]}>&-"

scenario "a second device logs in; a wrong password leaves nothing behind"
laptop login "${where[@]}" --password-file "$work/wrong" --json
expect_error 77 wrong_credentials
[[ -z $(find "$work/laptop" -type f) ]] || fail "no file in $(find "$work/laptop" -type f)"
device laptop login "${where[@]}" --password-file - --device laptop <"$work/password"
expect_status 0

scenario "an item is written, read, listed and synced, as text and as bytes"
device phone put --title shopping --json <<<'Buy salt.'
expect_status 0
shopping=$(json .id)
printf 'x\0\377y' >"$work/photo.bin"
phone put "$work/photo.bin" --collection files --json
photo=$(json .id)
for words in put "sync $work"; do
    # shellcheck disable=SC2086  # several words
    phone $words --collection saltern-chunks --json
    expect_error 64 usage
done
# A variable that is not set is not a folder, and not the working directory.
phone sync "" --json
expect_error 64 usage
phone list --json
expect_json '[.items[] | [.collection, .title, .bytes, .unsent]] | sort | tostring' \
    '[["files","photo.bin",4,true],["notes","shopping",10,true]]'
phone sync --json
expect_status 0
expect_json '[.sent, .unsent, .deletionsHeld] | tostring' '[2,0,false]'
laptop list --json
expect_json '.items | length' 0
laptop sync --json
expect_json '[.fetched, (.changed | length)] | tostring' '[2,2]'
laptop get shopping
expect_output 'Buy salt.'
laptop get "${photo:0:8}" --output "$work/copy.bin"
cmp "$work/photo.bin" "$work/copy.bin"
laptop get "$photo" --output "$work/copy.bin" --json
expect_error 73 file_exists
laptop get photo.bin --json
expect_json .data eAD/eQ==
laptop get nothing --json
expect_error 66 not_found
laptop list
[[ $body == *"shopping"* && $body == id* ]] || fail "a table"

scenario "neither passwords nor items are on the disk in the clear"
for text in 'correct horse' 'Buy salt' 'shopping' 'photo.bin'; do
    ! grep --recursive --quiet -- "$text" "$work/phone" "$work/laptop" || fail "no '$text' in $work"
done
[[ -z $(find "$work/phone" "$work/laptop" -type f -perm /077) ]] || fail "files that only their owner can read"

scenario "an item is edited, and the editor's folder is gone afterwards"
# shellcheck disable=SC2016  # the editor expands it
editor='sh -c '\''test "$(stat --format %a "$(dirname "$1")")" = 700 && echo "Buy pepper." >>"$1" && dirname "$1" >"$HOME/where"'\'' sh'
phone edit shopping --json
expect_status 0
expect_json .changed true
[[ ! -e $(<"$work/phone/where") ]] || fail "the folder to be gone: $(<"$work/phone/where")"
editor=true
phone edit shopping --json
expect_json .changed false
editor=false
phone edit shopping --json
expect_error 1 editor_failed
phone get shopping
expect_output $'Buy salt.\nBuy pepper.'
phone sync
laptop sync

scenario "empty content does not replace an item unasked, and what is replaced is kept"
device phone put --item shopping --json </dev/null
expect_error 65 empty_content
: >"$work/empty"
phone put "$work/empty" --item shopping --json
expect_error 65 empty_content
# shellcheck disable=SC2016  # the editor expands it
editor='sh -c '\'': >"$1"'\'' sh'
phone edit shopping --json
expect_error 65 empty_content
phone get shopping
expect_output $'Buy salt.\nBuy pepper.'
phone edit shopping --allow-empty --json
expect_status 0
device phone put --item shopping --json <<<'Buy vinegar.'
expect_status 0
use phone put --item shopping --allow-empty --json
phone versions shopping --json
expect_json '[.versions[].bytes] | tostring' '[13,0,22,10]'
first=$(json '.versions[2].version')
phone get shopping --version "$first"
expect_output $'Buy salt.\nBuy pepper.'
phone restore shopping --version "$first"
expect_status 0
phone get shopping
expect_output $'Buy salt.\nBuy pepper.'
phone restore shopping --version 4711 --json
expect_error 66 not_found
# A new item may be empty.
use phone put --title nothing --json
phone delete nothing

scenario "what is changed while the editor is open is kept beside the edit"
# shellcheck disable=SC2016
editor='sh -c '\''echo "From elsewhere." | "$CLIENT" put --item shopping >/dev/null && echo "From the editor." >"$1"'\'' sh'
phone edit shopping --json
expect_status 0
edited=$(json .id)
[[ $edited != "$shopping" ]] || fail "another id for the edit"
phone get "$shopping"
expect_output 'From elsewhere.'
phone get "$edited"
expect_output 'From the editor.'
phone status --json
expect_status 2
expect_json '.notices[0].kind' conflict
# What could not be written was not seen.
into_full phone status --seen
expect_status 74
phone status
expect_status 2
phone status --seen
expect_status 0
phone status
expect_status 0
phone delete "$edited"
device phone put --item "$shopping" <<<'Buy salt and pepper.'
phone sync
laptop sync

# has_connected PID: whether it has a connection.
# shellcheck disable=SC2317  # wait_until calls it
has_connected() { [[ -n $(find "/proc/$1/fd" -lname 'socket:*' 2>/dev/null) ]]; }

scenario "Ctrl-C ends a sync that waits for the server, and the next one loses nothing"
device phone put --title later <<<'Later.'
server_process=$(own_server_process)
kill -STOP "$server_process"
exec_in_home phone "$client" sync --json >/dev/null 2>"$work/errors" &
syncing=$!
wait_until 180 has_connected "$syncing" || fail "the command to connect"
kill -INT "$syncing"
status=0
wait "$syncing" || status=$?
kill -CONT "$server_process"
headers=$(<"$work/errors")
expect_error 130 interrupted
phone sync --json
expect_json '[.sent, .unsent] | tostring' '[1,0]'
phone delete later
phone sync
laptop sync

scenario "both devices go on without network"
stop_own_server
phone sync --json
expect_error 69 unreachable
phone status --json
expect_status 0
expect_json .online false
device phone put --item shopping <<<'Buy salt, pepper and oil.'
device laptop put --item shopping <<<'Buy vinegar.'
device laptop put --title wine <<<'Red.'
laptop delete photo.bin --json
expect_json '.deleted[0]' "$photo"
laptop list --json
expect_json '.items | length' 2
phone get shopping
expect_output 'Buy salt, pepper and oil.'
phone logout --json
expect_error 2 unsent_changes
start_own_server "$limits"

scenario "and nothing of it is lost: the conflict keeps both, on both"
phone sync
expect_status 0
laptop sync --json
expect_status 2
expect_json '.notices | map([.kind, .item]) | tostring' "[[\"conflict\",\"$shopping\"]]"
copy=$(json '.notices[0].other')
phone sync --json
expect_status 0
expect_json .removed[0] "$photo"
for name in phone laptop; do
    device "$name" get "$shopping"
    expect_output 'Buy salt, pepper and oil.'
    device "$name" get "$copy"
    expect_output 'Buy vinegar.'
    device "$name" get wine
    expect_output 'Red.'
done
laptop get shopping --json
expect_error 66 ambiguous

scenario "what was deleted elsewhere is restored here"
phone list --deleted --json
expect_json '.items | map(.id) | contains(["'"$photo"'"])' true
phone restore photo.bin --json
expect_json '.restored[0]' "$photo"
phone sync
laptop sync
laptop get photo.bin --output "$work/again.bin"
cmp "$work/photo.bin" "$work/again.bin"

scenario "many deletions at once wait until somebody agrees"
for number in $(seq 12); do
    device laptop put --collection many --title "many $number" <<<"$number"
done
laptop sync
phone sync
laptop list --collection many --json
mapfile -t many < <(json '.items[].id')
laptop delete "${many[@]}"
expect_status 0
laptop sync
phone sync --json
expect_status 2
expect_json '[.deletionsHeld, .notices[0].kind] | tostring' '[true,"massDeletion"]'
# The notice was printed before, but the status still asks for attention.
phone login --password-file "$work/password" --json
expect_status 2
expect_json '[.deletionsHeld, .notices] | tostring' '[true,[]]'
# So does `status`, also when what was listed has been seen.
phone status --seen --json
expect_status 2
phone status --json
expect_status 2
expect_json '[.deletionsHeld, .notices] | tostring' '[true,[]]'
# A log-out would lose the waiting deletions.
phone logout --json
expect_status 2
[[ $(jq --raw-output .error.code <<<"$headers") == deletions_held ]] || fail "that deletions wait"
phone devices --json
phone devices end "$(json '.devices[] | select(.name == "phone" and (.current | not)) | .id')"
expect_status 0
phone list --collection many --json
expect_json '.items | length' 12
phone sync --allow-deletions
expect_status 0
phone list --collection many --json
expect_json '.items | length' 0

scenario "a link opens as often as it may, in the terminal as in a browser"
phone share wine --views 2 --expires 1d --json
expect_status 0
json .url >"$work/link"
share=$(json .id)
phone shares --json
expect_json '.shares | map([.id, .maxViews]) | tostring' "[[\"$share\",2]]"
device stranger open --link-file "$work/link" --json </dev/null
expect_error 76 untrusted_certificate
use stranger open --link-file "$work/link" --certificate "$certificate" --pin "$pin"
expect_output 'Red.'
laptop open "$(<"$work/link")" --json
expect_json .text Red.
laptop open --link-file "$work/link" --json
expect_error 66 not_found
phone share wine --views 1 --json
json .url >"$work/link"
touch "$work/there"
laptop open --link-file "$work/link" --output "$work/there" --json
expect_error 73 file_exists
laptop open --link-file "$work/link" --output "$work/nowhere/opened" --json
expect_error 74 file_unusable
# Neither has cost the view.
laptop open --link-file "$work/link" --output "$work/opened"
expect_status 0
[[ $(<"$work/opened") == Red. ]] || fail "the content in the file"
laptop open --link-file "$work/link" --output "$work/again" --json
expect_error 66 not_found
[[ ! -e $work/again ]] || fail "no file without content"

scenario "a key that opens nothing costs no view that the right key would need"
phone share wine --views 1 --json
link=$(json .url)
laptop open "${link%#*}" --json
expect_error 64 usage
laptop open "${link%#*}#" --json
expect_error 64 usage
laptop open "${link}x" --json
expect_error 65 unreadable
kept=$(find "$work/laptop" -path '*saltern-client/shares/*' -name '*.json')
[[ $(stat --format %a "$kept") == 600 ]] || fail "only the owner to read $kept"
into_full laptop open "$link"
expect_status 74
# White space around the link does not count, and neither does the case of the host or the scheme.
laptop open " ${link/https:\/\/localhost/HTTPS:\/\/LocalHost} " --json
expect_json .text Red.
[[ ! -e $kept ]] || fail "nothing to be kept of what was opened"
laptop open "$link" --json
expect_error 66 not_found

scenario "a link ends in time although the device's clock is wrong"
if command -v faketime >"$work/faketime"; then
    status=0
    in_home phone faketime '+2 days' "$client" share wine --expires 1h --json \
        >"$work/late" 2>"$work/errors" </dev/null || status=$?
    headers=$(<"$work/errors")
    expect_status 0
    late=$(jq --raw-output .id "$work/late")
    phone shares --json
    expect_json ".shares[] | select(.id == \"$late\") | (.expiresAt | fromdate) - (.createdAt | fromdate) | . > 3500 and . < 3700" \
        true
    phone shares end "$late"
    expect_status 0
fi

scenario "what is shown once and cannot be written is kept in memory"
device_settings+=(XDG_RUNTIME_DIR=/dev/shm)
for words in "share wine --views 1" "recovery create --password-file $work/password"; do
    # shellcheck disable=SC2086  # words
    into_full phone $words
    expect_status 74
    kept=$(sed -n 's/.* is in \(.*\): move it from there$/\1/p' "$work/errors")
    [[ -s $kept ]] || fail "a file to be named: $headers"
    rm --recursive "${kept%/*}"
done

phone share photo.bin --json
share=$(json .id)
laptop open "$(json .url)" --json
expect_json '[.filename, .data] | tostring' '["photo.bin","eAD/eQ=="]'
phone shares end "$share"
expect_status 0
phone shares end "$share" --json
expect_error 66 not_found

scenario "the sessions and what has happened are listed; one is ended, and its device loses nothing"
phone devices --json
expect_json '.devices | map(.name) | sort | tostring' '["laptop","phone"]'
device laptop put --title unsent <<<'Not sent yet.'
phone devices end --others --json
expect_json .ended 1
laptop sync --json
expect_error 77 session_ended
laptop list
expect_status 0
laptop login --password-file "$work/password"
expect_status 0
laptop status --json
expect_json .unsent 0
phone events --limit 200 --json
expect_json '[.events[].kind] | contains(["session_opened","session_ended"])' true
phone devices end 0197d6a2-5f0c-7c4e-8d7a-0e6b7f2f9a11 --json
expect_error 66 not_found
phone devices end 12 --json
expect_error 64 usage

scenario "another password: the old one is refused, and the other device logs in again"
phone password --password-file "$work/wrong" --new-password-file "$work/password-2" --json
expect_error 77 wrong_credentials
phone password --password-file "$work/password" --new-password-file "$work/password-2"
expect_status 0
phone sync
expect_status 0
laptop sync --json
expect_error 77 session_ended
laptop login --password-file "$work/password" --json
expect_error 77 wrong_credentials
laptop login --password-file "$work/password-2"
expect_status 0

scenario "a second factor is asked for after the right password"
phone second-factor begin --password-file "$work/password-2" --json
secret=$(json .secret)
confirm_now() {
    unused_code "$secret" >"$work/code"
    phone second-factor confirm --code-file "$work/code" --json
}
expect_in_time 0 confirm_now
expect_json '.recoveryCodes | length' 10
json '.recoveryCodes[0]' >"$work/recovery-code"
laptop logout
expect_status 0
[[ -z $(find "$work/laptop" -type f) ]] || fail "no file in $(find "$work/laptop" -type f)"
again=("${where[@]}" --device laptop --password-file "$work/password-2")
laptop login "${again[@]}" --json
expect_error 77 code_required
one_time_code "$secret" 3600 >"$work/code"
laptop login "${again[@]}" --code-file "$work/code" --json
expect_error 77 wrong_code
laptop login "${again[@]}" --code-file "$work/recovery-code"
expect_status 0
laptop get wine
expect_output 'Red.'
phone second-factor codes --password-file "$work/password-2" --json
expect_json '.recoveryCodes | length' 10
phone second-factor end --password-file "$work/password-2"
expect_status 0

scenario "everything is sealed anew; a printed code from before still sets a new password, also on a new device"
phone recovery create --password-file "$work/password-2" --json
expect_status 0
json .code >"$work/printed"
phone rotate --password-file "$work/wrong" --json
expect_error 77 wrong_credentials
device phone put --title cheese --json <<<'Cheese.'
cheese=$(json .id)
phone sync
laptop sync
device laptop put --item "$cheese" <<<'Brie.'
laptop sync
device phone put --item "$cheese" <<<'Feta.'
# Other commands than sync also report that both were kept.
phone rotate --password-file "$work/password-2" --json
expect_status 2
expect_json '[.rotated, .notices[0].kind, .notices[0].item] | tostring' "[true,\"conflict\",\"$cheese\"]"
laptop sync --json
expect_error 77 session_ended
sed 's/^./U/' "$work/printed" >"$work/misprinted"
device tablet recovery use "${where[@]}" --recovery-file "$work/misprinted" \
    --new-password-file "$work/password" --json </dev/null
expect_error 65 malformed_recovery_code
use tablet recovery use "${where[@]}" --recovery-file "$work/printed" \
    --new-password-file "$work/password" --json
device tablet get "$shopping"
expect_output 'Buy salt, pepper and oil.'
device tablet put --item "$cheese" <<<'Edam.'
device tablet sync </dev/null
device laptop put --item "$cheese" <<<'Gouda.'
device laptop recovery use "${where[@]}" --recovery-file "$work/printed" \
    --new-password-file "$work/password" --json </dev/null
expect_status 2
expect_json '[.notices[] | select(.kind == "conflict") | .item] | tostring' "[\"$cheese\"]"
for name in phone laptop; do
    use "$name" login --password-file "$work/password"
    device "$name" get "$copy"
    expect_output 'Buy vinegar.'
done

scenario "a printed code that was removed sets no password any more; removing it twice is removing it once"
phone recovery create --password-file "$work/password" --json
expect_status 0
json .code >"$work/printed"
phone recovery remove --password-file "$work/wrong" --json
expect_error 77 wrong_credentials
phone status --json
expect_json .plan.recoveryCode true
for _ in 1 2; do
    phone recovery remove --password-file "$work/password" --json
    expect_status 0
    expect_json .removed true
done
phone status --json
expect_json .plan.recoveryCode false
device thief recovery use "${where[@]}" --recovery-file "$work/printed" \
    --new-password-file "$work/password-2" --json </dev/null
expect_error 77 wrong_credentials

scenario "a lost device: new password, new key and new printed code with one command, which can be run again"
phone recovery create --password-file "$work/password" --json
expect_status 0
json .code >"$work/printed"
phone devices lost nowhere --password-file "$work/wrong" --new-password-file "$work/password-2" --json
expect_error 77 wrong_credentials
phone devices lost laptop --password-file "$work/password" --new-password-file "$work/password-2" --json
expect_status 0
json .code >"$work/printed-2"
cmp --silent "$work/printed" "$work/printed-2" && fail "the printed code is the previous one"
laptop sync --json
expect_error 77 session_ended
phone devices lost laptop --password-file "$work/password-2" --new-password-file "$work/password" --json
expect_status 0
expect_json '.ended | length' 0
phone recovery remove --password-file "$work/password" --json
expect_status 0
laptop login --password-file "$work/password"
expect_status 0

scenario "another userid: the account keeps its name here, and other devices follow with what they have not sent"
renamed=$(unique grace)
stranger=$(unique mallory)
device laptop put --title "sent later" <<<'Not sent yet.'
expect_status 0
phone userid "$renamed" --password-file "$work/wrong" --json
expect_error 77 wrong_credentials
phone userid "$userid" --password-file "$work/password" --json
expect_status 1
phone userid "$renamed" --password-file "$work/password" --json
expect_status 0
expect_json .userid "$renamed"
phone status --json
expect_json '[.account, .userid] | tostring' "[\"$userid\",\"$renamed\"]"
phone sync
expect_status 0
laptop sync --json
expect_error 77 session_ended
laptop login --password-file "$work/password" --json
expect_error 77 wrong_credentials
laptop login --userid "$renamed" --password-file "$work/password" --json
expect_error 64 usage
use mallory register --server "$SALTERN_TEST_URL" --userid "$stranger" --certificate "$certificate" --pin "$pin" \
    --password-file "$work/password"
laptop login --account "$userid" --userid "$stranger" --password-file "$work/password" --json
expect_error 73 other_account
laptop login --account "$userid" --userid "$renamed" --password-file "$work/password" --json
expect_json '[.account, .userid] | tostring' "[\"$userid\",\"$renamed\"]"
laptop status --json
expect_json '[.userid, .unsent] | tostring' "[\"$renamed\",0]"
phone sync
phone get "sent later"
expect_output 'Not sent yet.'
# From now on nothing has to be said.
laptop login --password-file "$work/password"
expect_status 0

scenario "what one account exports another one imports; a second account has a name of its own"
phone export "$work/items.ndjson" --json
count=$(json .documents)
phone export "$work/items.ndjson" --json
expect_error 73 file_exists
phone export "$work/sealed.ndjson" --sealed --password-file "$work/password"
expect_status 0
[[ $(tail -n 1 "$work/sealed.ndjson") == '{"type":"end"'* ]] || fail "a whole export"
other=$(unique eve)
phone register --account eve --server "$SALTERN_TEST_URL" --userid "$other" --certificate "$certificate" --pin "$pin" \
    --password-file "$work/password"
expect_status 0
phone list --json
expect_error 64 usage
# Not all of them.
phone logout --account "" --json
expect_error 64 usage
phone status --json
expect_json '.accounts | tostring' "[\"$userid\",\"eve\"]"
sed '$d' "$work/items.ndjson" >"$work/cut.ndjson"
phone import "$work/cut.ndjson" --account eve --json
expect_error 65 unreadable
phone import "$work/items.ndjson" --account eve --json
expect_json '[.created, .copies] | tostring' "[$count,0]"
phone import "$work/items.ndjson" --account eve --json
expect_json '[.created, .unchanged] | tostring' "[0,$count]"
phone sync --account eve
phone get "$copy" --account eve
expect_output 'Buy vinegar.'

scenario "where the server asks for an invite, it comes from a file"
stop_own_server
start_own_server "$limits" SALTERN_REGISTRATION=invite
invited=(--server "$SALTERN_TEST_URL" --userid "$(unique bob)" --certificate "$certificate" --password-file "$work/password")
device bob register "${invited[@]}" --json </dev/null
expect_status 1
saltern invite create --json | jq --raw-output '.invites[0].code' >"$work/invite"
use bob register "${invited[@]}" --invite-file "$work/invite" --json

scenario "a terminal is asked for the password, shows nothing of it, and Ctrl-C ends the question"
"$repository/.venv/bin/python" - "$client" "$work/phone" "$userid" <<'PYTHON' || fail "the terminal to be asked"
import os, pty, sys

client, home, userid = sys.argv[1:]


def session(answers, *words):
    process, terminal = pty.fork()
    if process == 0:
        os.execve(client, [client, *words], {"HOME": home})
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            piece = b""
        if not piece:
            break
        shown += piece
        if answers and answers[0][0] in shown:
            os.write(terminal, answers.pop(0)[1])
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown


status, shown = session(
    [(b"Password of", b"correct horse battery staple\n")], "login", "--account", userid)
assert status == 0 and b"horse" not in shown, (status, shown)
status, shown = session([(b"Password of", b"correct\x03")], "login", "--account", userid)
assert status == 130 and b"correct" not in shown, (status, shown)
PYTHON

scenario "who leaves is asked, and leaves nothing"
phone leave --account eve --password-file "$work/password"
expect_status 1
phone leave --account eve --yes --password-file "$work/wrong" --json
expect_error 77 wrong_credentials
phone leave --account eve --yes --password-file "$work/password"
expect_status 0
phone leave --yes --password-file "$work/password"
expect_status 0
[[ -z $(find "$work/phone" -type f ! -name where) ]] || fail "no file in $(find "$work/phone" -type f)"
laptop sync --json
expect_error 77 session_ended
laptop login --password-file "$work/password" --json
expect_error 77 wrong_credentials
laptop logout
expect_status 0
