#!/usr/bin/env bash
# The metrics for Prometheus, and the dashboard and the alerts that use them.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"

metrics=127.0.0.1:$(free_port)
# One loop, so that it is known how many connections to the database there are.
settings=("SALTERN_METRICS_LISTEN=$metrics" SALTERN_LOOPS=1 SALTERN_MAX_CONNECTIONS_PER_ADDRESS=40)
start_ruler
start_own_server "${settings[@]}"
documents=$repository/docs

# scrape [OPTION… URL]: fills $work/metrics, within the time that Prometheus gives (scrape_timeout); every name that was ever
# served is in $work/served.
scrape() {
    local begin
    (($# > 0)) || set -- "http://$metrics/metrics"
    begin=$(milliseconds)
    curl --silent --show-error --fail --noproxy '*' --max-time 180 "$@" >"$work/metrics" || fail "the metrics"
    is_within 10000 "$begin" || fail "metrics within ten seconds, not after $(($(milliseconds) - begin)) ms"
    sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$work/metrics" >>"$work/served"
}

# value SAMPLE: its value; nothing when it is not there.
value() { grep --fixed-strings -- "$1 " "$work/metrics" | sed -n '/^#/!s/.* //p'; }

# is SAMPLE OPERATOR NUMBER: whether its value, at the last scrape, is equal to it (==), more (>), …
is() {
    local value
    value=$(value "$1")
    [[ -n $value ]] && awk "BEGIN { exit !($value $2 $3) }"
}

# expect_metric SAMPLE OPERATOR NUMBER: at the last scrape.
expect_metric() { is "$@" || fail "$*, which is $(value "$1"): $(grep --fixed-strings -- "${1%%[ \{]*}" "$work/metrics")"; }

# is_told SAMPLE OPERATOR NUMBER [SAMPLE OPERATOR NUMBER]…: true if one scrape fulfils all of them.
is_told() {
    scrape
    while (($# > 0)); do
        is "$1" "$2" "$3" || return 1
        shift 3
    done
}

# expect_told [SAMPLE OPERATOR NUMBER]…: in one scrape, in some time.
expect_told() { wait_until 180 is_told "$@" || fail "$*: $(grep --fixed-strings -- "${1%%[ \{]*}" "$work/metrics")"; }

register ada
password_key=$(random_base64 32) try_log_in
request GET /v1/account
# What the next scenarios look at. The database may not answer a single scrape in time.
expect_told saltern_database_up == 1

scenario "they are as Prometheus wants them"
promtool check metrics <"$work/metrics" >"$work/check" 2>&1 || fail "no complaint: $(cat "$work/check")"
handbook_block 'Metrics yaml 1' >"$work/prometheus.yml"
cp -- "$certificate" "$work/certificate.pem"
promtool check config "$work/prometheus.yml" >"$work/check" 2>&1 || fail "the handbook's words for them: $(cat "$work/check")"

scenario "the rules and the dashboard are what Prometheus understands, and alerts come when they are due"
promtool check rules "$documents/observability/alerts.yml" >"$work/check" 2>&1 || fail "good rules: $(cat "$work/check")"
sed "s|RULES|$documents/observability/alerts.yml|" "$repository/Tests/Integration/alerts.yml" >"$work/alerts.yml"
promtool test rules "$work/alerts.yml" >"$work/check" 2>&1 || fail "alerts when they are due: $(cat "$work/check")"
while read -r alert; do
    grep --quiet "^| \`$alert\` |" "$(handbook_page monitor)" || fail "$alert in the handbook"
done < <(sed -n 's/.*alert: //p' "$documents/observability/alerts.yml")
# Each expression as a rule, with the variables as Grafana fills them in.
jq '{groups: [{name: "dashboard", rules: [.panels[].targets[].expr | gsub("\\$instance"; ".*")] | to_entries
    | map({record: "panel:\(.key)", expr: .value})}]}' "$documents/observability/dashboard.json" >"$work/dashboard.yml"
promtool check rules "$work/dashboard.yml" >"$work/check" 2>&1 || fail "expressions of the dashboard: $(cat "$work/check")"

scenario "they tell of the database, its statements, and why requests were refused"
for line in 'saltern_database_up 1' 'saltern_database_commits_stalled 0' 'saltern_database_in_recovery 0' \
    'saltern_database_followers 0' 'saltern_database_standbys_awaited 0' 'saltern_database_connections{lane="reads"} ' \
    'saltern_database_requests_total{statement="InsertLogin"} 1' \
    'saltern_database_requests_total{statement="FindAccount"} 1' \
    'saltern_database_requests_failed_total{statement="InsertLogin"} 0' 'saltern_certificate_backup_key 1' \
    'saltern_http_problems_total{route="POST /v1/sessions",code="wrong_credentials"} 1'; do
    grep --quiet --fixed-strings -- "$line" "$work/metrics" || fail "a line $line: $(grep "${line%%[ \{]*}" "$work/metrics")"
done
expect_metric saltern_database_schema_version == "$(query 'SELECT max(version) FROM saltern.schema_migrations')"
expect_metric saltern_certificate_expiry_timestamp_seconds == \
    "$(date --date "$(openssl x509 -noout -enddate -in "$certificate" | sed 's/.*=//')" +%s)"

scenario "connections, handshakes, bodies, replies and streams are counted, and what a stranger asks for is no failure"
run_python "$repository/Tests/Integration/metrics_connections.py" "$own_port" "${metrics##*:}" "$certificate" "$token" ||
    fail "the right numbers"

scenario "who waits for a connection, and who for the turn of an account, is counted, and what statements take"
# write TOKEN: items, one after another, until the accounts are no longer locked.
write() {
    while [[ -e $work/held ]]; do
        # A connection may end without a reply on a slow machine.
        curl --silent --noproxy '*' --max-time 180 --cacert "$certificate" --request PUT --output /dev/null \
            --header "Authorization: Bearer $1" --header 'If-None-Match: *' --header 'Content-Type: application/json' \
            --data "{\"format\":\"opaque\",\"body\":\"$content\"}" "$SALTERN_TEST_URL/v1/items/$(uuid)" || true
    done
}
content=$(random_base64 100)
people=("$token")
for name in bob cleo dan eve fay gil hal ida jon kim lea; do
    register "$name"
    people+=("$token")
done
scrape
cp -- "$work/metrics" "$work/before"
# A session of psql locks all accounts, until its input ends.
exec {statements}> >(exec psql --no-psqlrc --quiet "$(server_setting SALTERN_OWNER_DATABASE_URL)" >/dev/null)
printf '%s\n' BEGIN\; 'UPDATE saltern.accounts SET plan = plan;' "\\! touch '$work/held'" >&"$statements"
wait_until 180 test -e "$work/held" || fail "the accounts to be held"
writers=()
# Twelve accounts for four connections, and nine more requests of the first account: three times as many as have to wait at once,
# because each gives up after some seconds and comes back.
firsts=()
for _ in {1..9}; do firsts+=("${people[0]}"); done
for person in "${people[@]}" "${firsts[@]}"; do
    write "$person" {statements}>&- &
    writers+=($!)
done
wait_until 180 is_told 'saltern_database_in_use{lane="leases"}' == 4 'saltern_database_waiting{lane="leases"}' '>=' 2 \
    saltern_database_keys_waiting '>=' 3 || waited=no
# So that a second of it is in what is counted below.
sleep 1
rm -- "$work/held"
exec {statements}>&-
wait "${writers[@]}"
[[ -z ${waited:-} ]] ||
    fail "four connections, at least two that wait for one, and three for a turn: $(grep ^saltern_database_ "$work/metrics")"
expect_told 'saltern_database_in_use{lane="leases"}' == 0 'saltern_database_waiting{lane="leases"}' == 0 \
    saltern_database_keys_waiting == 0
# expect_more SAMPLE NUMBER: than before, by so much at least.
expect_more() {
    local before
    # What was not counted yet has no sample.
    before=$(sed -n '/^#/!p' "$work/before" | { grep --fixed-strings -- "$1 " || true; } | sed 's/.* //')
    expect_metric "$1" '>=' "$2 + ${before:-0}"
}
expect_more 'saltern_database_waits_total{lane="leases"}' 2
expect_more 'saltern_database_wait_seconds_total{lane="leases"}' 1
expect_more saltern_database_key_waits_total 3
expect_more saltern_database_key_wait_seconds_total 1
# Each has met the lock once on a connection that others use, too.
expect_more 'saltern_database_requests_failed_total{statement="CreateItem"}' 6
expect_more 'saltern_database_request_seconds_total{statement="CreateItem"}' 4

scenario "a PostgreSQL that is frozen is not up, which Prometheus is told in time, and is again when it goes on"
postmaster=$(own_postmaster)
begin=$(milliseconds)
signal_family STOP "$postmaster"
curl --silent --noproxy '*' --max-time 180 --cacert "$certificate" --header "Authorization: Bearer $token" \
    --output /dev/null "$SALTERN_TEST_URL/v1/account" &
reader=$!
wait_until 180 is_told saltern_database_up == 0 'saltern_database_in_use{lane="reads"}' '>=' 1 && is_down=yes || is_down=
is_within 30000 "$begin" || is_down=
signal_family CONT "$postmaster"
[[ -n $is_down ]] ||
    fail "within 30 s a database that is not up, and a request that waits for it: $(grep ^saltern_database_ "$work/metrics")"
wait "$reader" || fail "the request to be answered"
expect_told saltern_database_up == 1 'saltern_database_in_use{lane="reads"}' == 0

scenario "why there is no connection to the database is told, until there is one"
superuser "ALTER ROLE saltern_app NOLOGIN"
superuser "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'saltern_app'" >/dev/null
has_failed() {
    is_told saltern_database_up == 0 && grep --quiet '^saltern_database_failure{reason=".*28000.*"} 1$' "$work/metrics"
}
wait_until 180 has_failed && told=yes || told=
superuser "ALTER ROLE saltern_app LOGIN"
[[ -n $told ]] || fail "the reason: $(grep ^saltern_database_ "$work/metrics")"
expect_told saltern_database_up == 1
! grep --quiet saltern_database_failure "$work/metrics" || fail "no reason any more"

scenario "600 connections that ask for nothing do not keep Prometheus out"
run_python - "${metrics##*:}" <<'PYTHON' || fail "an answer within ten seconds"
import http.client, socket, sys, time
from traffic.ruler import Ruler
port, ruler = int(sys.argv[1]), Ruler()
idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(600)]
asking, begin = http.client.HTTPConnection("127.0.0.1", port, timeout=180), time.monotonic()
asking.request("GET", "/metrics")
assert asking.getresponse().status == 200
assert time.monotonic() - begin < 10 + ruler.since(begin)
PYTHON

scenario "who follows PostgreSQL, and what it keeps for slots, is told where the role may know"
superuser "GRANT pg_read_all_stats TO saltern_app"
superuser "SELECT pg_create_physical_replication_slot('kept', true)" >/dev/null
expect_told 'saltern_database_standbys{kind="sync"}' == 0 saltern_database_slot_lag_bytes '>=' 0
superuser "SELECT pg_drop_replication_slot('kept')"
superuser "REVOKE pg_read_all_stats FROM saltern_app"

scenario "what should have been purged is told of, with its age, before a purge comes"
query "INSERT INTO saltern.deleted_contents (account_id, item_id, collection, format, body, created_at, expires_at)
    SELECT '$account_id', gen_random_uuid(), 'default', 'opaque', '\x00', now(), now() - n * interval '1 hour'
    FROM generate_series(1, 7) n"
query "INSERT INTO saltern.replaced_contents (account_id, item_id, revision, collection, format, body, created_at,
        updated_at, replaced_at, expires_at)
    SELECT '$account_id', gen_random_uuid(), n, 'default', 'opaque', '\x00', now(), now(), now(), now() - n * interval '2 hours'
    FROM generate_series(1, 3) n"
stop_own_server
start_own_server "${settings[@]}"
overdue() {
    is_told 'saltern_purge_overdue_seconds{kind="contents"}' '>=' 25200 \
        'saltern_purge_overdue_seconds{kind="contents"}' '<' 28800 \
        'saltern_purge_due_rows{kind="contents"}' == 7 'saltern_purge_due_rows{kind="invitations"}' == 0 \
        'saltern_purge_due_rows{kind="versions"}' == 3 \
        'saltern_purge_overdue_seconds{kind="versions"}' '>=' 21600 'saltern_purge_overdue_seconds{kind="shares"}' == 0
}
# Due rows are counted at the start and every five minutes.
wait_until 700 overdue || fail "seven rows, and seven hours: $(grep saltern_purge "$work/metrics")"

scenario "the handbook names what was served and nothing else, and dashboard and alerts ask for nothing else"
sort --unique --output "$work/served" "$work/served"
# shellcheck disable=SC2016  # the backticks are the handbook's
sed -n '/^| Metric | Meaning |/,/^$/p' "$(handbook_page monitor)" | grep --only-matching '`\(saltern\|process\)_[a-z_]*[`{]' |
    tr -d '`{' | sort -u >"$work/documented"
diff "$work/documented" "$work/served" >"$work/difference" || fail "the same names: $(cat "$work/difference")"
{
    jq --raw-output '.panels[].targets[].expr' "$documents/observability/dashboard.json"
    sed -n '/expr:/,/labels:/p' "$documents/observability/alerts.yml"
} | grep --only-matching '\(saltern\|process\)_[a-z_]*' | sed 's/_bucket$//' | sort -u >"$work/asked"
unknown=$(comm -23 "$work/asked" "$work/served")
[[ -z $unknown ]] || fail "metrics that there are, not $unknown"
missing=$(comm -13 "$work/asked" <(grep '^saltern_event_' "$work/served"))
[[ -z $missing ]] || fail "all metrics of events in a panel or an alert, not without $missing"

scenario "an address that others can reach is served with TLS"
stop_own_server
port=$(free_port)
start_own_server "SALTERN_METRICS_LISTEN=0.0.0.0:$port"
scrape --cacert "$certificate" "https://localhost:$port/metrics"
grep --quiet ^saltern_build_info "$work/metrics" || fail "metrics over TLS"
if curl --silent --noproxy '*' --max-time 180 "http://127.0.0.1:$port/metrics" >"$work/plain" && grep -q saltern_ "$work/plain"; then
    fail "nothing without TLS"
fi
