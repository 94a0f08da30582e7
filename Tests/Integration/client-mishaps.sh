#!/usr/bin/env bash
# Faults around saltern-client: folders in the wrong place, missing disks, output without a reader, an editor's folder that is
# left behind, a process that ends while its threads run.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client
exec </dev/null

exchanged() { settled phone && settled laptop && [[ -e $work/laptop/files/$1 ]]; }

runtime=$(mktemp --directory /dev/shm/saltern-scenario-XXXXXX)
folders_at_end=("$runtime")
device_settings=(XDG_RUNTIME_DIR="$runtime" SSLKEYLOGFILE="$work/tls-secrets")

mkdir --parents "$work/phone/files" "$work/laptop/files"
register_phone_and_laptop
store=$work/phone/.local/share/saltern-client

# Threads that are still freeing what is theirs must not meet what libraries do at a process's end.
scenario "a command that has said all it says is gone at once"
clang -shared -fPIC -x c -o "$work/end.so" - <<'C'
#include <unistd.h>
__attribute__((destructor)) static void end(void) { (void)!write(STDOUT_FILENO, "ended slowly\n", 13); }
C
for program in jq "$client" "$executable"; do
    body=$(LD_PRELOAD=$work/end.so "$program" --help)
    [[ $program == jq ]] && slowly=1 || slowly=0
    (($(grep --count --line-regexp 'ended slowly' <<<"$body") == slowly)) || fail "the end of $program to be $slowly"
done

scenario "what opens the connections is written nowhere, whatever the environment asks for"
phone sync
expect_status 0
[[ ! -e $work/tls-secrets ]] || fail "no secrets of connections in a file"

scenario "a folder that holds the store, is it, or is in it, is refused before anything is written there"
ln --symbolic "$work/phone" "$work/link"
for place in "$work/phone" "$work/link" "$store" "$store/accounts/$userid" "$store/accounts/$userid/inner"; do
    mkdir --parents "$place"
    phone sync "$place" --json
    expect_error 78 store_in_folder
    [[ ! -e $place/.saltern ]] || fail "nothing to be written in $place"
done
rmdir "$store/accounts/$userid/inner"

scenario "a copy of a folder is not taken for the folder; what was moved is"
echo one >"$work/phone/files/a"
echo two >"$work/phone/files/b"
wait_until 180 exchanged b || fail "the files to arrive"
cp --archive "$work/phone/files" "$work/copy"
rm "$work/copy/a"
phone sync "$work/copy" --json
expect_error 78 copied_folder
phone sync "$work/copy"
[[ $headers == *"$work/phone/files"* ]] || fail "the message to say of what it is a copy"
laptop sync "$work/laptop/files"
[[ -e $work/laptop/files/a ]] || fail "nothing to be deleted"
rm --recursive "$work/copy"
mv "$work/phone/files" "$work/moved"
rm "$work/moved/a"
phone sync "$work/moved" --json
expect_status 0
[[ $(json '.deletedThere | tostring') == '["a"]' ]] || fail "the deletion to be seen in the moved folder: $body"
mv "$work/moved" "$work/phone/files"
phone sync "$work/phone/files" --json
expect_status 0

scenario "a folder that is older than when it was in sync last is refused, and with --allow-deletions all of it is kept"
cp --archive "$work/phone/files" "$work/older"
echo newer >"$work/phone/files/b"
phone sync "$work/phone/files" --json
expect_status 0
mv "$work/phone/files" "$work/newer"
mv "$work/older" "$work/phone/files"
phone sync "$work/phone/files" --json
expect_error 78 outdated_folder
phone sync "$work/phone/files"
[[ $headers == *"--allow-deletions"* ]] || fail "the message to say what to do"
phone sync "$work/phone/files" --allow-deletions --json
expect_status 2
[[ $(json '[.conflicts, .deletedHere, .deletedThere] | map(length) | tostring') == '[1,0,0]' ]] ||
    fail "both to be kept: $body"
[[ $(<"$work/phone/files/b") == newer ]] || fail "the server's version to have the name"
rm "$work/phone/files/b (conflict, phone, "*
echo two >"$work/phone/files/b"
rm --recursive "$work/newer"
wait_until 180 settled phone || fail "the folder to be in sync"

scenario "an empty folder in the place of the disk is filled, and deletes nothing, also with --allow-deletions"
mv "$work/phone/files" "$work/disk"
mkdir "$work/phone/files"
phone sync "$work/phone/files" --json
expect_status 2
[[ -z $(find "$work/phone/files" -type f -not -path '*/.saltern/*') ]] || fail "nothing to be fetched yet"
phone sync "$work/phone/files" --allow-deletions --json
expect_status 0
[[ $(<"$work/phone/files/b") == two ]] || fail "the folder to be filled"
laptop sync "$work/laptop/files" --json
[[ -e $work/laptop/files/b ]] || fail "nothing to be deleted elsewhere"
rm --recursive "$work/phone/files"
mv "$work/disk" "$work/phone/files"
phone sync "$work/phone/files" --json
expect_status 0

scenario "after a restore of the server a device puts its later keyring back when somebody says so"
# state: what the database has of the account's keyring.
state() { query "SELECT keyring_revision || ' ' || encode(keyring, 'hex') FROM saltern.accounts WHERE userid = '$userid'"; }
restored=$(state)
laptop rotate --password-file "$work/password"
expect_status 0
[[ $(state) != "$restored" ]] || fail "another keyring"
query "UPDATE saltern.accounts SET keyring = decode('${restored#* }', 'hex'), keyring_revision = ${restored%% *}
    WHERE userid = '$userid'"
laptop login --password-file "$work/password" --json
expect_error 76 keyring_unusable
# Whoever does not, is told each time: others cannot read what is written here.
for words in "status --seen" sync "sync $work/laptop/files"; do
    # shellcheck disable=SC2086  # several words
    laptop $words --json
    expect_status 2
    expect_json '[.notices[].kind] | contains(["keyringRolledBack"]) | tostring' true
done
laptop login --restore-keyring --password-file "$work/password" --json
expect_status 0
[[ $(state) != "$restored" ]] || fail "the later keyring to be back"
laptop sync --json
expect_json '[.notices[].kind] | contains(["keyringRolledBack"]) | tostring' false
# What an older key has sealed is believed until then.
laptop rotate --password-file "$work/password"
expect_status 0
# The other sessions have ended.
phone login --password-file "$work/password"
[[ $status == 0 || $status == 2 ]] || fail "the phone to be logged in"
for name in phone laptop; do wait_until 180 settled "$name" || fail "the folder of $name to be in sync"; done

scenario "a session has replaced the keyring: a new device restores it, and so does the printed code"
mia=$(unique mia)
arrive_as() {
    local name=$1
    shift
    device "$name" "$@" --server "$SALTERN_TEST_URL" --userid "$mia" --certificate "$certificate" --json
}
arrive_as tablet register --password-file "$work/password"
expect_status 0
device tablet put --title kept "$work/password"
use tablet recovery create --password-file "$work/password" --json
json .code >"$work/code"
device tablet sync
# The thief has a session, and replaces what the password and the code open, twice.
spoil() {
    local _ userid password_key
    log_in "$mia" "$(stretch "$(<"$work/password")" "localhost.saltern:$mia")"
    for _ in 1 2; do
        request PUT /v1/account/keyring \
            "{\"keyring\":\"$(random_base64 300)\",\"recoveryKeyring\":\"$(random_base64 700)\"}" --header 'If-Match: *'
        expect_status 200
    done
    token=
}
spoil
arrive_as desktop login --password-file "$work/password"
expect_error 76 keyring_replaced
arrive_as desktop login --restore-keyring --password-file "$work/password"
expect_status 0
device desktop list --json
expect_json '[.items[].title] | tostring' '["kept"]'
spoil
echo 'a third horse, a third staple' >"$work/third"
arrive_as reader recovery use --recovery-file "$work/code" --new-password-file "$work/third"
expect_error 76 keyring_replaced
arrive_as reader recovery use --restore-keyring --recovery-file "$work/code" --new-password-file "$work/third"
expect_status 0
device reader list --json
expect_json '[.items[].title] | tostring' '["kept"]'

scenario "where the password is another since, it is not put back: what is here is exported, and imported after a new log-in"
echo 'another horse, another staple' >"$work/later"
mkdir "$work/other"
other() { device other "$@"; }
eve=$(unique eve)
arrive() {
    other "$1" --server "$SALTERN_TEST_URL" --userid "$eve" --certificate "$certificate" --password-file "$work/password" --json
}
arrive register
expect_status 0
verifier=$(query "SELECT encode(verifier, 'hex') FROM saltern.logins WHERE userid = '$eve'")
restored=$(query "SELECT keyring_revision || ' ' || encode(keyring, 'hex') FROM saltern.accounts WHERE userid = '$eve'")
other password --password-file "$work/password" --new-password-file "$work/later"
expect_status 0
other rotate --password-file "$work/later"
expect_status 0
other put --title sent "$work/password"
other sync
expect_status 0
other put --title unsent "$work/later"
query "UPDATE saltern.logins SET verifier = decode('$verifier', 'hex') WHERE userid = '$eve'"
query "UPDATE saltern.accounts SET keyring = decode('${restored#* }', 'hex'), keyring_revision = ${restored%% *}
    WHERE userid = '$eve'"
other login --restore-keyring --password-file "$work/password" --json
expect_error 76 keyring_not_restorable
other export "$work/other.ndjson"
expect_status 0
other logout --discard-unsent
expect_status 0
arrive login
expect_status 2
other import "$work/other.ndjson" --json
expect_json '[.created, .copies] | tostring' '[1,1]'
other sync
expect_status 0
for title in sent unsent; do
    other get "$title"
    expect_status 0
done
[[ $body == "$(<"$work/later")" ]] || fail "what was never sent"

scenario "output that cannot be written is an error, whatever was to be printed"
phone put --title note "$work/password"
expect_status 0
for words in "get note" "list" "status" "sync" "export $work/export.ndjson" "--help" "list --help"; do
    # shellcheck disable=SC2086  # several words
    into_full phone $words
    expect_status 74
    [[ $headers == *"cannot be written"* ]] || fail "a line on standard error for $words"
done
into_full phone list --json
expect_error 74 output_unusable
# A pipe whose reader has ended, and no output at all.
mkfifo "$work/pipe"
exec 3<>"$work/pipe"
exec 4>"$work/pipe"
exec 3<&-
for output in '>&4' '>&-'; do
    status=0
    # shellcheck disable=SC2016  # the inner shell expands it
    in_home phone bash -c 'exec "$@" '"$output" sh "$client" list \
        2>"$work/errors" </dev/null || status=$?
    headers=$(<"$work/errors")
    expect_status 74
    [[ $headers == *"cannot be written"* ]] || fail "a line on standard error for $output"
done
exec 4>&-

scenario "what a link opens once, and the disk has no room for, is kept in memory"
head --bytes 200000 /dev/urandom >"$work/secret"
phone put --title secret "$work/secret"
phone sync
expect_status 0
phone share secret --views 1 --json
expect_status 0
json .url >"$work/secret-link"
mkdir "$work/full"
namespace=(--mount)
((EUID == 0)) || namespace+=(--user --map-root-user)
status=0
# shellcheck disable=SC2016  # the inner shell's
in_home phone unshare "${namespace[@]}" bash -c '
    mount -t tmpfs -o size=300k,mode=0777 saltern "$1" && head --bytes 250000 /dev/zero >"$1/fill" || exit 1
    exec "$2" open --link-file "$3" --output "$1/secret" --json' - "$work/full" "$client" "$work/secret-link" \
    >"$work/body" 2>"$work/errors" </dev/null || status=$?
body=$(<"$work/body") headers=$(<"$work/errors")
expect_error 74 disk_full
kept=$(find "$runtime" -name content)
cmp "$kept" "$work/secret" || fail "the content in $kept"
grep --quiet --fixed-strings "$kept" "$work/errors" || fail "the error to say where"
rm --recursive "${kept%/*}"

scenario "a folder is watched for as long as somebody reads what is said"
exec 3<>"$work/pipe"
exec_in_home phone "$client" sync "$work/phone/files" --watch --json \
    >"$work/pipe" 2>"$work/errors" </dev/null 3<&- &
watching=$!
read -r -t 120 body <&3 || fail "a first round"
exec 3<&-
echo more >"$work/phone/files/more"
wait_until 180 is_gone "$watching" || fail "the command to end"
status=0
wait "$watching" || status=$?
headers=$(<"$work/errors")
expect_error 74 output_unusable

scenario "a second Ctrl-C ends at once a command that the first does not"
head --bytes 300000 /dev/urandom >"$work/long"
phone put --title long "$work/long"
expect_status 0
exec 3<>"$work/pipe"
# What a shell starts in the background ignores Ctrl-C otherwise.
exec_in_home phone python3 -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$client" get long >"$work/pipe" 2>"$work/errors" </dev/null &
getting=$!
# Without a reader the command waits as soon as the pipe is full.
is_writing() { [[ $(<"/proc/$getting/comm") == saltern-client ]] && grep --quiet pipe "/proc/$getting"/task/*/wchan; }
wait_until 180 is_writing || fail "the command to wait for a reader"
# 1 and not 0, with which the kernel still hands the memory to a program that takes dumps.
grep --quiet --extended-regexp '^Max core file size +1 +1 ' "/proc/$getting/limits" || fail "no dumps of its memory"
start_ruler
begun=$(milliseconds)
kill -INT "$getting"
sleep 1
is_running "$getting" || fail "it to wait still"
# On a slow machine the first two may arrive as one.
presses=1
ends() {
    kill -INT "$getting" 2>/dev/null || true
    ((++presses))
    wait_until 60 is_gone "$getting"
}
wait_until 180 ends || fail "the command to have ended"
((presses == 2)) || was_disturbed "$begun" || fail "the second Ctrl-C to end the command, not number $presses"
status=0
wait "$getting" || status=$?
expect_status 130
exec 3<&-

scenario "what an editor had saved when the command was killed is found again"
cat >"$work/editor" <<'EDITOR'
#!/bin/sh
# Writes, and kills the command that has started it, through the shell between them.
echo "Half a poem." >>"$1"
echo "$1" >"$HOME/where"
kill -KILL "$(sed --quiet 's/^PPid:\t//p' "/proc/$PPID/status")"
EDITOR
chmod 0700 "$work/editor"
editor=$work/editor
phone edit note
expect_status 137
phone_edit=$(<"$work/phone/where")
editor=false
for words in "list" "get note"; do
    # shellcheck disable=SC2086  # several words
    phone $words
    expect_status 0
    [[ $headers == *"${phone_edit%/*}"* ]] || fail "to be told where the text is"
done
phone list --json
expect_status 0
[[ $(jq --raw-output .notice.code <<<"$headers") == edit_left ]] || fail "an object that says so"
grep --quiet 'Half a poem' "$phone_edit" || fail "the text to be kept"
laptop list
[[ -z $headers ]] || fail "only whose text it is to be told"
rm --recursive "${phone_edit%/*}"
phone list
[[ -z $headers ]] || fail "no word about what is gone"

scenario "what export writes, import brings back: also whether a file can be run, and of when it is"
printf '#!/bin/sh\n' >"$work/phone/files/run"
chmod 0700 "$work/phone/files/run"
touch --date=@1700000000 "$work/phone/files/run"
wait_until 180 exchanged run || fail "the file to arrive"
phone export "$work/items.ndjson"
expect_status 0
other=$(unique eve)
use eve register --server "$SALTERN_TEST_URL" --userid "$other" --certificate "$certificate" \
    --password-file "$work/password"
use eve import "$work/items.ndjson"
mkdir "$work/eve/files"
device eve sync "$work/eve/files"
[[ -x $work/eve/files/run ]] || fail "the file to be executable"
[[ $(stat --format %Y "$work/eve/files/run") == 1700000000 ]] || fail "the file's time to be kept"

scenario "scripts hear what people hear: what was decided without them, and what was deleted elsewhere"
echo 'from the phone' >"$work/phone/files/b"
wait_until 180 exchanged b || fail "the change to arrive"
laptop put --title shared "$work/password"
laptop sync
phone sync
echo phone >"$work/text"
phone put --item shared "$work/text"
echo laptop >"$work/text"
laptop put --item shared "$work/text"
phone sync
laptop sync "$work/laptop/files" --json
expect_status 2
[[ $(json '.notices[0].kind') == conflict ]] || fail "the notice in the object"
laptop delete note
laptop sync
phone sync
[[ $body == *"deleted elsewhere: 1"* ]] || fail "the deletion to be counted: $body"
phone status --json
(($(json .deleted) > 0)) || fail "what can be restored to be counted: $body"

for number in {1..12}; do laptop put --collection many --title "many $number" "$work/text"; done
laptop sync
phone sync
mapfile -t many < <(laptop list --collection many --json && jq --raw-output '.items[].id' <<<"$body")
laptop delete "${many[@]}"
laptop sync
exec_in_home phone "$client" sync "$work/phone/files" --watch --json >"$work/watch" 2>&1 </dev/null &
watching=$!
wait_until 180 grep --quiet '"kind":"massDeletion"' "$work/watch" || fail "the notice while it watches: $(<"$work/watch")"
end_process "$watching" INT 180
[[ $(jq --raw-output 'select(.notices) | .notices[].kind' "$work/watch") == massDeletion ]] || fail "the notice once"
[[ $(jq 'select(.deletionsHeld) | .deletionsHeld' "$work/watch") == true* ]] || fail "that deletions are held"
phone sync --allow-deletions
expect_status 0
[[ $body == *"deleted elsewhere: 12"* ]] || fail "all of them to be counted: $body"

scenario "a server that never ends its head, its trailers, a short reply or an error is refused before it has sent much"
# A server that sends its second argument without end, to one client after another.
cat >"$work/flood.py" <<'PYTHON'
import os, socket, ssl, sys

directory, part, port_file = sys.argv[1:]
line = b"X-Flood: " + b"x" * 2_000 + b"\r\n"
begin = {
    "head": b"HTTP/1.1 200 OK\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
    "reply": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
    "error": b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\n\r\n",
}[part]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{directory}/certificate.pem", f"{directory}/key.pem")
listener = socket.create_server(("127.0.0.1", 0))
with open(port_file + ".new", "w") as file:
    print(listener.getsockname()[1], file=file)
os.rename(port_file + ".new", port_file)
while True:
    connection, _ = listener.accept()
    count = 0
    try:
        with context.wrap_socket(connection, server_side=True) as stream:
            stream.recv(65_536)
            stream.sendall(begin)
            for _ in range(100_000):
                stream.sendall(line)
                count += len(line)
    except OSError:
        pass
    with open(port_file + ".sent", "w") as file:
        print(count, file=file)
PYTHON
for part in head trailers reply error; do
    rm --force "$work/port" "$work/port.sent"
    setpriv --pdeathsig TERM python3 "$work/flood.py" "$SALTERN_TEST_HOME/tls" "$part" "$work/port" &
    flood=$!
    wait_until 180 test -e "$work/port" || fail "a server to listen"
    device "$part" register --server "https://localhost:$(<"$work/port")" --userid ada --certificate "$certificate" \
        --password-file "$work/password" --json
    expect_error 76 unacceptable_reply
    wait_until 180 test -s "$work/port.sent" || fail "the server to be left"
    # A few MiB wait in the sockets between the two.
    (($(<"$work/port.sent") < 20000000)) || fail "little to be taken, and not $(<"$work/port.sent") bytes"
    end_process "$flood" TERM 180
done

scenario "a folder is not in sync as long as something of it is not sent: each round says so"
plan=tiny-$(openssl rand -hex 6)
saltern plan set "$plan" --create --items 1 >/dev/null
saltern account set-plan "$userid" "$plan" >/dev/null
echo 'no room' >"$work/phone/files/c"
phone sync "$work/phone/files" --json
expect_status 2
for _ in 1 2; do
    # Not because of something new.
    phone sync "$work/phone/files" --json
    expect_status 2
    [[ $(json '[.unsent, .offline, .notices, .warnings, .conflicts] | tostring') == '[1,false,[],[],[]]' ]] ||
        fail "one change to be unsent: $body"
done
saltern account set-plan "$userid" default >/dev/null
phone sync "$work/phone/files" --json
expect_status 0
phone status --json
expect_status 0

scenario "what is too long for an item is refused at once; what the server does not take is named, and can be given up"
head --bytes 2000000 /dev/zero | tr '\0' x >"$work/long.txt"
phone put "$work/long.txt" --json
expect_error 1 no_room
[[ $headers == *2031649*1048576* ]] || fail "the numbers: $headers"
phone status --json
expect_json .unsent 0
saltern account set-plan "$userid" "$plan" >/dev/null
echo 'beyond the plan' >"$work/short.txt"
phone put "$work/short.txt" --json
beyond=$(json .id)
phone sync
expect_status 2
phone status
expect_status 2
[[ $body == *"not sent"*"$beyond"*"short.txt"*"saltern-client discard"* ]] || fail "the item and what to do: $body"
phone discard short.txt
expect_status 0
phone status --json
expect_status 0
expect_json '[.unsent, .unsentItems, .notices] | tostring' '[0,[],[]]'
phone list --deleted --json
expect_json "[.items[] | select(.id == \"$beyond\")] | length" 1
saltern account set-plan "$userid" default >/dev/null

scenario "a server with another key is not taken for one that is away"
profile=$work/phone/.config/saltern-client/accounts/$userid.json
jq --arg pin "sha256//$(random_base64 32)" '.pins = [$pin] | .publishedPins = []' "$profile" >"$work/profile"
cp "$profile" "$work/profile.before"
cp "$work/profile" "$profile"
phone sync "$work/phone/files" --json
expect_error 76 pin_mismatch
cp "$work/profile.before" "$profile"

scenario "the pins that the server publishes are learnt where only a folder is synced, too"
jq --arg pin "$(pin_of "$certificate")" '.pins = [$pin] | .publishedPins = []' "$work/profile.before" >"$profile"
phone sync "$work/phone/files" --json
expect_status 0
(($(jq '.publishedPins | length' "$profile") > 0)) || fail "the pins to be remembered: $(<"$profile")"

scenario "the longest item that a server can have arrives"
plan=huge-$(openssl rand -hex 6)
saltern plan set "$plan" --create --item-bytes 16777216 >/dev/null
saltern account set-plan "$userid" "$plan" >/dev/null
log_in "$userid" "$(stretch 'correct horse battery staple' "localhost.saltern:$userid")"
head --bytes 16777216 /dev/urandom >"$work/huge"
request PUT "/v1/items/$(uuid)/body?collection=notes&format=opaque" '' --header 'If-None-Match: *' \
    --header 'Content-Type: application/octet-stream' --data-binary "@$work/huge"
expect_status 201
phone sync --json
expect_status 2
expect_json '[.fetched, .notices[0].kind] | tostring' '[1,"unreadable"]'
