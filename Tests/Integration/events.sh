#!/usr/bin/env bash
# Outgoing events: webhooks that another library verifies, receivers that fail, two nodes, and a service that fetches.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"
ensure_python_tools

receiver_port=$(free_port)
receivers=$work/receivers
mkdir -- "$receivers"
: >"$work/record"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext 'subjectAltName=DNS:localhost' -keyout "$work/receiver.key" -out "$work/receiver.pem" 2>/dev/null

start_receiver() {
    : >"$work/receiver.log"
    setpriv --pdeathsig TERM "$python" "$repository/Tests/Integration/event_receiver.py" --port "$receiver_port" \
        --certificate "$work/receiver.pem" --key "$work/receiver.key" --record "$work/record" --secrets "$receivers" \
        >>"$work/receiver.log" 2>&1 </dev/null &
    receiver=$!
    wait_until 180 grep -q ready "$work/receiver.log" || fail "the receiver to start: $(<"$work/receiver.log")"
}
start_receiver
start_ruler
start_own_server SALTERN_RATE_LIMITS=off SALTERN_DESTINATION_CA_FILE="$work/receiver.pem"

# destination NAME [ARGUMENT…]: a destination whose receiver has its name.
destination() {
    local name=$1
    shift
    saltern destination create "$name" --audience "$name" --url "https://localhost:$receiver_port/$name" "$@" >"$receivers/$name"
}

behave() { printf '%s\n' "$2" >"$receivers/$1.behaviour"; }

# received RECEIVER [FILTER]: its lines in the record, or what jq makes of all of them.
received() { jq --slurp --compact-output "map(select(.receiver == \"$1\")) | ${2:-.}" "$work/record"; }

# delivered RECEIVER [FILTER]: the same without repetitions, which come when an attempt takes too long.
delivered() {
    received "$1" "reduce .[] as \$line ([]; if any(.[]; .id == \$line.id) then . else . + [\$line] end) | ${2:-.}"
}

has_received() { [[ $(delivered "$1" length) -ge $2 ]]; }

undelivered() { query "SELECT count(*) FROM saltern.outgoing_events"; }
# shellcheck disable=SC2317  # wait_until calls it
all_is_delivered() { [[ $(undelivered) == 0 ]]; }

scenario "without a destination nothing is stored"
register before
[[ $(query 'SELECT (SELECT count(*) FROM saltern.outgoing_events) + (SELECT count(*) FROM saltern.event_queues)') == 0 ]] ||
    fail "no row"

scenario "events arrive in their order, signed as Standard Webhooks, without userid and account id"
begun=$(milliseconds)
destination crm
[[ $(<"$receivers/crm") =~ ^whsec_[A-Za-z0-9+/=]{44}$ ]] || fail "a secret"
register ada
ada=$userid
saltern account set-plan "$ada" pro >/dev/null
saltern account lock "$ada" >/dev/null
saltern account unlock "$ada" >/dev/null
saltern account delete "$ada" --yes >/dev/null
wait_until 180 has_received crm 5 || fail "five events: $(received crm)"
[[ $(delivered crm 'map(.type)') == '["account.created","plan.changed","account.locked","account.unlocked","account.deleted"]' ]] ||
    fail "the events in their order: $(received crm)"
[[ $(delivered crm 'map(.data.number)') == '[1,2,3,4,5]' ]] || fail "numbers without a gap: $(received crm)"
[[ $(received crm 'map(.verified) | unique') == '[true]' ]] || fail "signatures that another library verifies"
[[ $(received crm 'map(.data.sub) | unique | length') == 1 ]] || fail "one name"
if grep --quiet --fixed-strings --regexp="$ada" --regexp="$account_id" "$work/record"; then fail "neither userid nor account id"; fi
wait_until 180 all_is_delivered || fail "nothing left: $(saltern event list)"
[[ $(received crm length) == $(delivered crm length) ]] || was_disturbed "$begun" || fail "each event once"

scenario "while a secret rotates both sign, and the receiver may have either"
old=$(<"$receivers/crm")
new=$(saltern destination rotate crm)
[[ $new != "$old" ]] || fail "another secret"
# Nodes read destinations every five seconds.
both_sign() {
    local before
    before=$(delivered crm length)
    register ben
    wait_until 180 has_received crm $((before + 1)) || fail "an event"
    [[ $(received crm '.[-1].signatures') == 2 ]]
}
wait_until 180 both_sign || fail "two signatures: $(received crm '.[5:]')"
[[ $(received crm '.[5:] | map(.verified) | unique') == '[true]' ]] || fail "the old secret to sign: $(received crm '.[5:]')"
printf '%s\n' "$new" >"$receivers/crm"
before=$(delivered crm length)
register cyd
wait_until 180 has_received crm $((before + 1)) || fail "another event"
[[ $(received crm '.[-1] | [.verified, .signatures]') == '[true,2]' ]] || fail "both: $(received crm '.[-1]')"

scenario "receivers that fail delay neither the one that works nor the server, and no redirect is followed"
for name in error redirect close hang dribble flood; do
    destination "$name"
    behave "$name" "$name"
done
begun=$SECONDS before=$(delivered crm length)
for _ in {1..10}; do register many; done
wait_until 180 has_received crm $((before + 10)) || fail "the receiver that works to get ten more than $before: $(delivered crm length)"
for name in error redirect close hang dribble flood; do
    wait_until 180 has_received "$name" 1 || fail "an attempt at $name"
done
# Attempts end after ten seconds.
attempted() { [[ $(query "SELECT count(*) FROM saltern.event_queues WHERE attempts > 0") -ge 6 ]]; }
wait_until 180 attempted || fail "failures that are counted: $(query 'SELECT attempts, due_at FROM saltern.event_queues')"
[[ $(received elsewhere length) == 0 ]] || fail "no redirect to be followed"
request GET /v1/health/ready
expect_status 200
[[ $(saltern event list --destination error --json | jq '.events | length') == 10 ]] || fail "events that wait for the failing one"
printf 'failing receivers: %s s\n' $((SECONDS - begun))

scenario "a receiver that is mended gets what has waited, in order"
for name in error redirect close hang dribble flood; do behave "$name" ok; done
for name in error redirect close hang dribble flood; do saltern event retry --destination "$name" >/dev/null; done
# An open circuit breaker tests its destination again after at most five minutes; here after ten to forty seconds.
wait_until 180 all_is_delivered || fail "nothing left: $(saltern event list)"
for name in error redirect close hang dribble flood; do
    [[ $(received "$name" 'map(select(.answer == "ok").data.sub) | unique | length') == 10 ]] || fail "all ten at $name"
    saltern destination remove "$name" --yes >/dev/null
done

scenario "410 disables a destination"
destination gone
behave gone gone
register dan
is_disabled() { [[ $(saltern destination list --json | jq --raw-output '.destinations[] | select(.destination == "gone").disabledAt') != null ]]; }
wait_until 180 is_disabled || fail "a disabled destination"
register eve
[[ $(query "SELECT count(*) FROM saltern.outgoing_events e JOIN saltern.destinations d USING (destination_id) WHERE d.name = 'gone'") == 1 ]] ||
    fail "nothing more for it"

scenario "events and destinations are removed after a question, and with a record"
for words in "event drop --destination gone" "destination remove gone"; do
    # shellcheck disable=SC2086  # words of a command
    if said=$(saltern $words 2>&1 </dev/null); then fail "a question before: $words"; fi
    [[ $said == *'without a terminal; use --yes'* ]] || fail "a question, not: $said"
done
[[ $(saltern event retry --destination gone --actor grace) == "1 event is due" ]] || fail "one event to be due"
[[ $(saltern event drop --destination gone --yes --actor grace --reason tidy) == "1 event is removed" ]] || fail "one event to be removed"
[[ $(saltern event drop --destination gone --yes) == "0 events are removed" ]] || fail "no further event"
saltern destination remove gone --yes >/dev/null
[[ $(saltern audit list --json | jq --raw-output '.entries[:3][] | "\(.action) \(.detail)"') == "destination_removed destination gone
events_dropped destination gone; reason: tidy
events_retried destination gone" ]] || fail "three records: $(saltern audit list)"

scenario "a service fetches events and confirms them"
saltern destination create jobs --audience jobs --pull --events all >/dev/null
service=$(saltern service create jobs-1 --audience jobs)
# confirm: the events of the last reply; their number is in .confirmed.
confirm() {
    request POST /v1/service-events/ack "{\"destination\":\"jobs\",\"ids\":$(jq --compact-output '[.events[].id]' <<<"$body")}"
}
# Nodes read every five seconds which destinations receive events of sessions.
has_session_event() {
    local types
    register eye
    token=$service
    request POST /v1/service-events/lease '{"destination":"jobs"}'
    expect_status 200
    types=$(json '.events[].type')
    confirm
    grep --quiet --line-regexp session.opened <<<"$types"
}
wait_until 180 has_session_event || fail "an event of a session"
register fay
token=$service
request POST /v1/service-events/lease '{"destination":"jobs","wait":20}'
expect_status 200
[[ $(json '[.events[].type] | sort | join(" ")') == "account.created session.opened" ]] || fail "two events"
leased=$body
request POST /v1/service-events/lease '{"destination":"jobs"}'
expect_json '.events | length' 0
body=$leased
confirm
expect_json .confirmed 2
token=
request POST /v1/service-events/lease '{"destination":"jobs"}'
expect_problem 401 service_unauthenticated
saltern destination remove jobs --yes >/dev/null

scenario "two nodes, of which one is killed again and again: every event arrives, and each account's in order"
port=$(free_port)
destination pair
behave pair slow
tokens=()
for _ in {1..6}; do
    register pair
    tokens+=("$token")
done
for round in {1..3}; do
    start_other_server "$work/other" SALTERN_LISTEN="127.0.0.1:$port"
    for token in "${tokens[@]}"; do
        for number in {1..4}; do
            request PUT /v1/account/receipt "{\"receipt\":\"$round-$number\"}"
            expect_status 200
        done
    done
    sleep 4
    end_process "$other_pid" KILL 60
    wait "$other_pid" 2>/dev/null || true
done
behave pair ok
# A lease of a killed node ends after 30 seconds.
wait_until 600 all_is_delivered || fail "nothing left: $(saltern event list)"
[[ $(received pair 'group_by(.data.sub) | length') == 6 ]] || fail "six accounts"
# At least once, and a repetition only of the event before: numbers never go back further.
# shellcheck disable=SC2016  # $i is jq's.
[[ $(received pair 'group_by(.data.sub) | map(map(.data.number) | (unique == [range(1; 14)]) and
    ([range(1; length) as $i | .[$i] - .[$i - 1]] | all(. == 0 or . == 1))) | unique') == '[true]' ]] ||
    fail "all in order: $(received pair 'group_by(.data.sub) | map(map(.data.number))')"
[[ $(received pair 'map(.verified) | unique') == '[true]' ]] || fail "signatures"
printf 'repeated: %s of %s\n' "$(received pair 'length - (map(.id) | unique | length)')" "$(received pair length)"

# The purge takes each account alone on a cluster.
rows=$([[ -z ${SALTERN_TEST_CLUSTER_DIRECTORY-} ]] && echo 50000 || echo 2500)
scenario "many purged events leave no rows, and files that no longer grow"
saltern destination create bulk --audience bulk --url "https://localhost:$receiver_port/bulk" >"$receivers/bulk"
table_bytes() { query "SELECT pg_total_relation_size('saltern.outgoing_events') + pg_total_relation_size('saltern.event_queues')"; }
bulk_id=$(query "SELECT destination_id FROM saltern.destinations WHERE name = 'bulk'")
fill() {
    query "INSERT INTO saltern.event_queues (account_id, destination_id, lane, last_number, latest, due_at, ends)
        SELECT a, '$bulk_id', l, 1, l, now() + interval '1 hour', true
        FROM (SELECT gen_random_uuid() AS a, gen_random_uuid() AS l FROM generate_series(1, $rows)) s;
        INSERT INTO saltern.outgoing_events
            (account_id, destination_id, lane, number, event_id, kind, occurred_at, waiting_since, parked_at)
        SELECT account_id, destination_id, lane, 1, lane, 'session.opened', now() - interval '9 days', now() - interval '9 days',
            CASE WHEN random() < 0.5 THEN now() - interval '4 days' END
        FROM saltern.event_queues WHERE destination_id = '$bulk_id'"
}
# As autovacuum does it, which may come later. Without statistics of the new rows a purge takes long.
analyze() { query 'ANALYZE saltern.outgoing_events' && query 'ANALYZE saltern.event_queues'; }
# A slow machine can end a statement after ten seconds. The next purge goes on.
purge_all() { wait_until 1800 saltern purge >/dev/null || fail "the purge to end"; }
sizes=()
no_longer_grow() { ((${#sizes[@]} >= 3 && sizes[-1] - sizes[-2] <= sizes[0] * 2 / 10)); }
# Rows that a slow purge leaves to the next VACUUM let the files grow once.
for _ in {1..6}; do
    fill
    analyze
    purge_all
    query "UPDATE saltern.outgoing_events SET parked_at = now() - interval '4 days' WHERE parked_at IS NOT NULL;
        UPDATE saltern.event_queues SET due_at = now() - interval '9 days' WHERE destination_id = '$bulk_id'"
    analyze
    purge_all
    [[ $(query "SELECT count(*) FROM saltern.outgoing_events WHERE destination_id = '$bulk_id'") == 0 ]] || fail "no event left"
    query 'VACUUM saltern.outgoing_events' && query 'VACUUM saltern.event_queues'
    sizes+=("$(table_bytes)")
    query "DELETE FROM saltern.event_queues WHERE destination_id = '$bulk_id'"
    query 'VACUUM saltern.event_queues'
    ! no_longer_grow || break
done
no_longer_grow || fail "files that stay as they are: ${sizes[*]}"
printf 'files: %s bytes\n' "${sizes[*]}"

scenario "a stop ends a service's wait for events at once"
saltern destination create late --audience late --pull >/dev/null
service=$(saltern service create late-1 --audience late)
# stop_took: how long the own server's last stop took, in milliseconds, as its log has it.
stop_took() { echo $(($(time_of_event server_stopped) - $(time_of_event server_stopping))); }
stop_is_quick() { is_within 12000 "$(time_of_event server_stopping)" "$(time_of_event server_stopped)"; }
wait_for_event() {
    token=$service once=yes request POST /v1/service-events/lease '{"destination":"late","wait":25}' \
        --header 'Expect: 100-continue' --verbose 2>"$work/waiting"
    expect_status 200
}
stop_during_wait() {
    local waiting
    : >"$work/waiting"
    wait_for_event &
    waiting=$!
    wait_until 180 grep --quiet '^< HTTP/1.1 100' "$work/waiting" || fail "the server to read the request: $(<"$work/waiting")"
    # It looks for events first.
    sleep 2
    stop_own_server || fail "a clean end"
    wait "$waiting" && stop_is_quick
}
for attempt in 1 2 3 4 5; do
    begun=$(milliseconds)
    ! stop_during_wait || break
    if ((attempt == 5)) || ! was_disturbed "$begun"; then
        fail "a reply to the service that waited, and a stop within ten seconds, not after $(stop_took) ms"
    fi
    start_own_server SALTERN_RATE_LIMITS=off SALTERN_DESTINATION_CA_FILE="$work/receiver.pem"
done

scenario "a name whose resolver does not answer delays no other receiver, and no stop"
if is_root && unshare --mount --propagation private true 2>/dev/null; then
    mkdir -- "$work/unresolving"
    : >"$work/resolver.log"
    # The port of a name server cannot be chosen. Each run on this machine has an address of its own.
    resolver_address=127.53.$((receiver_port / 250)).$((receiver_port % 250 + 1))
    /usr/bin/python3 -c '
import socket, sys, time
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind((sys.argv[1], 53))
print("ready", flush=True)
time.sleep(3600)' "$resolver_address" >"$work/resolver.log" 2>&1 </dev/null &
    resolver=$!
    wait_until 180 grep -q ready "$work/resolver.log" || fail "a silent resolver: $(<"$work/resolver.log")"
    printf 'nameserver %s\noptions timeout:20 attempts:3\n' "$resolver_address" >"$work/resolv.conf"
    # shellcheck disable=SC2016  # the inner shell expands them
    printf '#!/usr/bin/env bash\nexec unshare --mount --propagation private bash -c %q %q %q "$@"\n' \
        'mount --bind "$0" /etc/resolv.conf && exec "$@"' "$work/resolv.conf" "$executable" >"$work/unresolving/saltern"
    chmod 0755 -- "$work/unresolving/saltern"
    executable=$work/unresolving/saltern start_own_server SALTERN_RATE_LIMITS=off SALTERN_DESTINATION_CA_FILE="$work/receiver.pem"
    saltern destination create dead --audience dead --url https://dead.example.org/ >/dev/null
    # A node that has read the destination has attempted it.
    is_attempted() {
        register dee
        [[ $(query "SELECT count(*) FROM saltern.event_queues q JOIN saltern.destinations d USING (destination_id)
            WHERE d.name = 'dead' AND (q.attempts > 0 OR q.lease IS NOT NULL)") -ge 1 ]]
    }
    wait_until 180 is_attempted || fail "an attempt at the name"
    longest=0
    for _ in {1..12}; do
        before=$(delivered crm length)
        register far
        begun=$(milliseconds)
        wait_until 180 has_received crm $((before + 1)) || fail "an event at the receiver that works"
        taken=$(($(milliseconds) - begun))
        is_within 8000 "$begun" || fail "an event at the receiver that works within eight seconds, not $taken ms"
        longest=$((taken > longest ? taken : longest))
        sleep 1
    done
    is_timed_out() { [[ $(query "SELECT count(*) FROM saltern.event_queues q JOIN saltern.destinations d USING (destination_id)
        WHERE d.name = 'dead' AND q.attempts > 0") -ge 5 ]]; }
    wait_until 180 is_timed_out || fail "attempts that end: $(query 'SELECT attempts, due_at FROM saltern.event_queues')"
    stop_own_server
    stop_is_quick || fail "a stop within ten seconds, not after $(stop_took) ms"
    printf 'slowest of the receiver that works: %s ms; stop: %s ms\n' "$longest" "$(stop_took)"
    end_process "$resolver" KILL 30
else
    echo '-- skipped: only root mounts another resolver'
fi

end_process "$receiver" TERM 30
wait "$receiver" 2>/dev/null || true
