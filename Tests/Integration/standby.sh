#!/usr/bin/env bash
# docker-compose.standby.yml without Docker: the same files set up a synchronous standby. Without the standby writes are
# rejected and reads continue. After the loss of the primary and the promotion, every acknowledged write is stored and no device
# lists everything again.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/postgres.sh
source "$repository/scripts/lib/postgres.sh"

folder=$(mktemp --directory --tmpdir saltern-standby-XXXXXX)
# PostgreSQL's system user has to pass through it.
chmod 0711 -- "$folder"
standby_pid=
standby_port=

# shellcheck disable=SC2317  # the end of the scenario calls it
stop_standby() { [[ -z $standby_pid ]] || pg_ctl_standby stop --mode immediate || true; }
at_end=(stop_own_server stop_standby postgres_stop)
folders_at_end=("$folder")

# Compose's rules, except that PostgreSQL's system user is another one here.
sed 's/^local all all peer$/local all all trust/' "$repository/scripts/docker/pg_hba.conf" >"$folder/pg_hba.conf"
openssl rand -hex 32 >"$folder/password"
install --mode 0755 -- "$repository/scripts/docker/start-standby" "$repository/scripts/docker/create-standby-role.sh" "$folder"
chmod 0644 -- "$folder/pg_hba.conf" "$folder/password"

pg_ctl_standby() {
    as_postgres_owner "$(dirname -- "$(postgres_tool postgres)")/pg_ctl" --pgdata "$folder/data/standby" "$@" >/dev/null
}

start_primary() {
    postgres_open "$folder/primary"
    export PGPORT
    PGPORT=$(free_port)
    postgres_start "$folder/primary.log" -c port="$PGPORT" -c listen_addresses=127.0.0.1 \
        -c hba_file="$folder/pg_hba.conf" -c synchronous_standby_names='FIRST 1 (standby)'
    PGOPTIONS='-c synchronous_commit=local' postgres_create_roles
    psql_as_superuser --command "SET synchronous_commit = local" --command "ALTER ROLE saltern_owner PASSWORD 'open-sesame'" \
        --command "ALTER ROLE saltern_app PASSWORD 'open-sesame'"
    # It can be called again, and its password is in no log.
    for _ in 1 2; do
        as_postgres_owner env PGHOST="$postgres_sockets" PGPORT="$PGPORT" STANDBY_PASSWORD_FILE="$folder/password" \
            "$folder/create-standby-role.sh" >/dev/null
    done
    ! grep --quiet --fixed-strings -- "$(<"$folder/password")" "$folder/primary.log" || fail "no password in the log"
}

start_standby() {
    install --directory --mode 0700 --owner "$postgres_owner" -- "$folder/data" "$folder/sockets"
    standby_port=${standby_port:-$(free_port)}
    as_postgres_owner env PGDATA="$folder/data" PRIMARY_HOST=127.0.0.1 PRIMARY_PORT="$PGPORT" HBA_FILE="$folder/pg_hba.conf" \
        STANDBY_PASSWORD_FILE="$folder/password" PATH="$(dirname -- "$(postgres_tool postgres)"):$PATH" \
        setpriv --pdeathsig INT bash "$folder/start-standby" -c port="$standby_port" -c listen_addresses=127.0.0.1 \
        -c unix_socket_directories="$folder/sockets" >"$folder/standby.log" 2>&1 &
    standby_pid=$!
    wait_until 180 standby_is_waited_for || fail "the standby to follow: $(tail "$folder/standby.log")"
}

standby_is_waited_for() {
    [[ $(psql_as_superuser --tuples-only --no-align --command \
        "SELECT sync_state FROM pg_stat_replication WHERE application_name = 'standby'") == sync ]]
}

# url ROLE: both, whichever of them writes.
url() {
    printf 'postgresql://%s:open-sesame@127.0.0.1:%s,127.0.0.1:%s/saltern?target_session_attrs=read-write\n' \
        "$1" "$PGPORT" "$standby_port"
}

# write_new: writes a new item and leaves the reply's status in status.
write_new() { request PUT "/v1/items/$(uuid)" "{\"format\":\"opaque\",\"body\":\"$content\"}" --header 'If-None-Match: *'; }

# prepare_writers: forty new items, five for each of eight new accounts, in a file for curl and, a line each, in items.
prepare_writers() {
    local of_ada=$token account item
    echo "{\"format\":\"opaque\",\"body\":\"$content\"}" >"$folder/item"
    for account in {1..8}; do
        ((account == 1)) || echo next
        register "writer-$account" >&2
        for item in {1..5}; do
            item=$(uuid)
            printf 'url = "%s/v1/items/%s"\noutput = "/dev/null"\n' "$SALTERN_TEST_URL" "$item"
            printf '%s %s\n' "$item" "$token" >>"$folder/items"
        done
        printf '%s\n' 'request = PUT' 'header = "Content-Type: application/json"' 'header = "If-None-Match: *"' \
            "header = \"Authorization: Bearer $token\"" "data-binary = \"@$folder/item\"" "cacert = \"$certificate\"" \
            'noproxy = "*"' 'max-time = 180' 'write-out = "%{http_code} %{url}\n"'
    done >"$folder/writers"
    token=$of_ada
}

# service_took COUNT: the milliseconds in which as many connections at once get a reply that needs no database: the machine's share.
service_took() {
    local begin index
    for ((index = 0; index < $1; index++)); do
        printf 'url = "%s/v1/service"\noutput = "/dev/null"\n' "$SALTERN_TEST_URL"
    done >"$folder/services"
    begin=$(milliseconds)
    curl --no-progress-meter --parallel --parallel-immediate --parallel-max "$1" --noproxy '*' --max-time 180 --cacert "$certificate" \
        --config "$folder/services"
    echo $(($(milliseconds) - begin))
}

# read_once PATH: reads without a repetition, except one that the machine's own lateness has disturbed.
read_once() {
    local begin
    for _ in {1..5}; do
        begin=$(milliseconds)
        once=yes request GET "$1"
        if [[ $status != 503 ]] || ! was_disturbed "$begin"; then break; fi
    done
    expect_status 200
}

# reads_go_on: an item and an account, of which the database has to be asked.
reads_go_on() {
    local begin
    begin=$(milliseconds)
    read_once "/v1/items/$id"
    read_once /v1/account
    # Behind these commits they would wait until the standby is back.
    is_within 10000 "$begin" || fail "reads that do not wait for commits"
}
is_written() { once=yes write_new && [[ $status == 201 ]]; }

# scrape: fetches the server's metrics.
scrape() { curl --silent --show-error --fail --noproxy '*' "http://$metrics/metrics" >"$work/metrics" || fail "the metrics"; }
# tells LINE…: true if the metrics have each of these whole lines.
tells() {
    local line
    scrape
    for line in "$@"; do
        grep --quiet --line-regexp --fixed-strings -- "saltern_database_$line" "$work/metrics" || return 1
    done
}
replication() { grep 'saltern_database_\(in_rec\|foll\|stand\|slot\)' "$work/metrics"; }
# is_behind STANDBY: whether it has less than the primary.
is_behind() { scrape && grep --quiet "^saltern_database_standby_lag_bytes{standby=\"$1\"} [1-9]" "$work/metrics"; }
ask_standby() {
    as_postgres_owner psql --no-psqlrc --quiet --tuples-only --no-align --host "$folder/sockets" --port "$standby_port" \
        --command "$1" postgres
}

scenario "a standby copies the primary, and is waited for"
start_primary
start_standby
metrics=127.0.0.1:$(free_port)
start_ruler
start_own_server "SALTERN_DATABASE_URL=$(url saltern_app)" "SALTERN_OWNER_DATABASE_URL=$(url saltern_owner)" \
    SALTERN_FAILOVER=synchronous "SALTERN_METRICS_LISTEN=$metrics"
saltern doctor --json >"$work/doctor" || fail "the doctor to be content: $(<"$work/doctor")"
register ada
id=$(uuid)
content=$(random_base64 100)
request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$content\"}" --header 'If-None-Match: *'
expect_status 201
request GET /v1/changes
cursor=$(json .cursor)

scenario "metrics tell of the standby what the server's role may know"
# The database may not answer a single one in time.
wait_until 180 tells 'in_recovery 0' 'followers 1' 'standbys_awaited 1' ||
    fail "one standby, which commits wait for: $(replication)"
if grep --quiet 'saltern_database_\(standbys{\|standby_lag\|slot\)' "$work/metrics"; then fail "no more than that: $(replication)"; fi
psql_as_superuser --quiet --command 'GRANT pg_read_all_stats TO saltern_app'
told() { tells 'standbys{kind="sync"} 1' 'standbys{kind="async"} 0' 'standby_lag_bytes{standby="standby"} 0'; }
wait_until 180 told || fail "a synchronous standby that has everything: $(replication)"

scenario "and how far it is behind"
psql_as_superuser --quiet --command "SELECT pg_create_physical_replication_slot('nobody', true)" >/dev/null
ask_standby 'SELECT pg_wal_replay_pause()' >/dev/null
is_paused() { [[ $(ask_standby 'SELECT pg_get_wal_replay_pause_state()') == paused ]]; }
wait_until 180 is_paused || fail "a standby that replays nothing"
write_new
expect_status 201
wait_until 180 is_behind standby || fail "a standby that is behind: $(replication)"
later() { write_new && scrape && grep --quiet '^saltern_database_standby_lag_seconds{standby="standby"} \(0\.0*[1-9]\|[1-9]\)' "$work/metrics"; }
wait_until 180 later || fail "for how long: $(replication)"
grep --quiet '^saltern_database_slot_lag_bytes [1-9]' "$work/metrics" || fail "the log that is kept for a slot: $(replication)"
psql_as_superuser --quiet --command "SELECT pg_drop_replication_slot('nobody')" >/dev/null
ask_standby 'SELECT pg_wal_replay_resume()' >/dev/null
wait_until 180 told || fail "a standby that has everything again: $(replication)"
if grep --quiet saltern_database_slot "$work/metrics"; then fail "no slot: $(replication)"; fi

scenario "the standby is gone: forty writers wait for a second, then writes are refused at once, and reads go on"
prepare_writers
pg_ctl_standby stop --mode immediate
wait_until 180 is_gone "$standby_pid" || fail "the standby to be gone"
# The server has not yet noticed that these commits do not end. The writes wait, and receive no success.
share=$(service_took 40)
sent=$(milliseconds)
stdbuf --output=L curl --no-progress-meter --parallel --parallel-immediate --parallel-max 40 --config "$folder/writers" \
    >"$folder/told" &
writers_pid=$!
reads_go_on
until grep --quiet database_commits_stalled "$own_home/run.log"; do
    (($(milliseconds) < sent + 600000)) || fail "the log to say so"
    reads_go_on
done
stalled=$(time_of_event database_commits_stalled)
# A second, and what the machine adds to it.
is_within $((5000 + 4 * share)) "$sent" "$stalled" ||
    fail "commits to be given up after a second, not after $((stalled - sent)) ms; forty connections took $share ms"
# One of some is quick enough: a busy machine keeps any of them waiting.
refused_at_once='' times=()
for _ in {1..8}; do
    started=$(milliseconds)
    once=yes write_new
    ended=$(milliseconds)
    expect_problem 503 database_unavailable
    [[ -n $(header retry-after) ]] || fail "a time to try again"
    share=$(service_took 1)
    times+=("$((ended - started)) of $share")
    ! is_within $((1000 + 4 * share)) "$started" "$ended" || refused_at_once=yes
    reads_go_on
done
[[ -n $refused_at_once ]] || fail "a write to be refused within a second, not after (ms, of which the machine's) ${times[*]}"
if grep --quiet --invert-match '^503 ' "$folder/told"; then fail "no writer to be told a success: $(<"$folder/told")"; fi
wait_until 180 tells 'followers 0' 'standbys_awaited 1' 'standbys{kind="sync"} 0' ||
    fail "metrics to tell of no standby: $(replication)"

scenario "the standby is back: writes go on by themselves"
start_standby
wait_until 180 is_written || fail "a write to be taken again"
wait "$writers_pid" || fail "every writer to be answered"
[[ $(wc --lines <"$folder/told") == 40 ]] || fail "forty writers to be answered: $(<"$folder/told")"
if grep --quiet --invert-match '^\(201\|503\) ' "$folder/told"; then fail "201 or 503 for who waited: $(<"$folder/told")"; fi
of_ada=$token
while read -r item token; do
    grep --quiet "^201 .*/$item$" "$folder/told" || continue
    request GET "/v1/items/$item"
    expect_status 200
done <"$folder/items"
token=$of_ada
wait_until 180 grep --quiet database_commits_resumed "$own_home/run.log" || fail "the log to say so"

scenario "the primary is gone and the standby is promoted: all is there, and the cursor still counts"
postgres_stop
pg_ctl_standby promote
wait_until 180 on_every_loop item_is_read || fail "the item"
expect_json .body "$content"
request GET "/v1/changes?since=$cursor"
expect_status 200
request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" --header 'If-Match: "1"'
expect_status 200
grep --quiet failover_without_loss "$own_home/run.log" || fail "the log to say so"
if grep --quiet time_went_back "$own_home/run.log"; then fail "no word of time that went back"; fi
wait_until 180 tells 'in_recovery 0' 'followers 0' 'standbys_awaited 0' ||
    fail "metrics to tell of a primary alone: $(replication)"
