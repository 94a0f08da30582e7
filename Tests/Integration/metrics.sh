#!/usr/bin/env bash
# What Prometheus reads, and the dashboard and the alerts that stand on it.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

metrics=127.0.0.1:$(free_port)
start_own_server "SALTERN_METRICS_LISTEN=$metrics"
documents=$repository/docs

# served [OPTION…]: the names of all metrics that the server tells.
scrape() { curl --silent --show-error --fail --noproxy '*' "$@" >"$work/metrics" || fail "the metrics"; }
served() { sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$work/metrics" | sort -u; }

register ada
request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$(head --bytes 32 /dev/urandom | base64)\"}"
request GET /v1/account
scrape "http://$metrics/metrics"

scenario "they are as Prometheus wants them"
promtool check metrics <"$work/metrics" >"$work/check" 2>&1 || fail "no complaint: $(cat "$work/check")"

scenario "each of them is in the handbook, and each that the handbook names is there"
served >"$work/served"
# shellcheck disable=SC2016  # the backticks are the handbook's
sed -n '/^| Metric | Is |/,/^$/p' "$documents/admins.md" | grep --only-matching '`\(saltern\|process\)_[a-z_]*[`{]' |
    tr -d '`{' | sort -u >"$work/documented"
# Only while it has something to tell.
sort -u - "$work/served" <<'NAMES' >"$work/all"
saltern_clock_difference_seconds
saltern_database_failure
saltern_database_slot_lag_bytes
saltern_database_standbys
saltern_database_standby_lag_bytes
saltern_database_standby_lag_seconds
saltern_purge_due_rows
saltern_purge_overdue_seconds
NAMES
diff "$work/documented" "$work/all" >"$work/difference" || fail "the same names: $(cat "$work/difference")"

scenario "the dashboard and the alerts ask for nothing else"
promtool check rules "$documents/observability/alerts.yml" >"$work/check" 2>&1 || fail "good rules: $(cat "$work/check")"
sed "s|RULES|$documents/observability/alerts.yml|" "$repository/Tests/Integration/alerts.yml" >"$work/alerts.yml"
promtool test rules "$work/alerts.yml" >"$work/check" 2>&1 || fail "alerts when they are due: $(cat "$work/check")"
while read -r alert; do
    grep --quiet "^| \`$alert\` |" "$documents/admins.md" || fail "$alert in the handbook"
done < <(sed -n 's/.*alert: //p' "$documents/observability/alerts.yml")
{
    jq --raw-output '.panels[].targets[].expr' "$documents/observability/dashboard.json"
    sed -n '/expr:/,/labels:/p' "$documents/observability/alerts.yml"
} | grep --only-matching '\(saltern\|process\)_[a-z_]*' | sed 's/_bucket$//' | sort -u >"$work/asked"
unknown=$(comm -23 "$work/asked" "$work/all")
[[ -z $unknown ]] || fail "metrics that there are, not $unknown"

scenario "they tell of the database, its statements, and why requests were refused"
for line in 'saltern_database_up 1' 'saltern_database_commits_stalled 0' 'saltern_database_in_recovery 0' \
    'saltern_database_followers 0' 'saltern_database_standbys_awaited 0' 'saltern_database_connections{lane="reads"} ' \
    'saltern_database_requests_total{statement="InsertLogin"} ' 'saltern_database_requests_total{statement="FindAccount"} 1' \
    'saltern_certificate_backup_key 1' \
    'saltern_http_problems_total{route="POST /v1/sessions",code="wrong_credentials"} 1'; do
    grep --quiet --fixed-strings -- "$line" "$work/metrics" || fail "a line $line: $(grep "${line%%[ \{]*}" "$work/metrics")"
done
newest=$(query 'SELECT max(version) FROM saltern.schema_migrations')
grep --quiet --line-regexp "saltern_database_schema_version $newest" "$work/metrics" || fail "the schema's version"

scenario "a PostgreSQL that is frozen is not up, and is again when it goes on"
postmaster=$(own_postmaster)
mapfile -t frozen < <(echo "$postmaster" && pgrep --parent "$postmaster")
up() { scrape --max-time 60 "http://$metrics/metrics" && grep --quiet --line-regexp "saltern_database_up $1" "$work/metrics"; }
kill -STOP "${frozen[@]}"
up 0 && is_down=yes || is_down=
kill -CONT "${frozen[@]}"
[[ -n $is_down ]] || fail "a database that is not up"
wait_until 180 up 1 || fail "a database that is up"

scenario "600 connections that ask for nothing do not keep Prometheus out"
/usr/bin/python3 - "${metrics##*:}" <<'PYTHON' || fail "an answer within ten seconds"
import http.client, socket, sys
port = int(sys.argv[1])
idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(600)]
asking = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
asking.request("GET", "/metrics")
assert asking.getresponse().status == 200
PYTHON

scenario "what should have been purged is told of, with its age, before a purge comes"
query "INSERT INTO saltern.deleted_contents (account_id, item_id, collection, format, body, created_at, expires_at)
    SELECT account_id, gen_random_uuid(), 'default', 'opaque', '\x00', now(), now() - n * interval '1 hour'
    FROM saltern.accounts, generate_series(1, 7) n LIMIT 7"
stop_own_server
start_own_server "SALTERN_METRICS_LISTEN=$metrics"
overdue() {
    scrape "http://$metrics/metrics"
    awk '$1 == "saltern_purge_overdue_seconds{kind=\"contents\"}" && $2 >= 25200 && $2 < 28800 { age = 1 }
        $1 == "saltern_purge_due_rows{kind=\"contents\"}" && $2 == 7 { rows = 1 }
        $1 == "saltern_purge_overdue_seconds{kind=\"shares\"}" && $2 == 0 { none = 1 }
        END { exit !(age && rows && none) }' "$work/metrics"
}
wait_until 180 overdue || fail "seven rows, and seven hours: $(grep saltern_purge "$work/metrics")"

scenario "an address that others can reach is served with TLS"
stop_own_server
port=$(free_port)
start_own_server "SALTERN_METRICS_LISTEN=0.0.0.0:$port"
scrape --cacert "$certificate" "https://localhost:$port/metrics"
served | grep --quiet --line-regexp saltern_build_info || fail "metrics over TLS"
if curl --silent --noproxy '*' --max-time 20 "http://127.0.0.1:$port/metrics" >"$work/plain" && grep -q saltern_ "$work/plain"; then
    fail "nothing without TLS"
fi
