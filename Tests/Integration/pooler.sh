#!/usr/bin/env bash
# Through PgBouncer: in session mode with every version, in transaction mode with one that follows prepared statements.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/packages.sh
source "$repository/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/postgres.sh
source "$repository/scripts/lib/postgres.sh"
# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"

PATH=$PATH:/usr/sbin
folder=$(mktemp --directory --tmpdir saltern-pooler-XXXXXX)
# PostgreSQL's system user must be able to enter it. Only that user and root can reach the sockets.
chmod 0711 -- "$folder"
postgres_authentication=trust
pooler_pid=

at_end=(stop_own_server stop_pooler postgres_stop)
folders_at_end=("$folder")

# start_pooler MODE
start_pooler() {
    local sockets=$folder/pooler
    [[ -d $sockets ]] || as_postgres_owner_make "$sockets"
    {
        printf '[databases]\nsaltern = host=%s dbname=saltern\n[pgbouncer]\n' "$postgres_sockets"
        printf '%s = %s\n' listen_addr '' unix_socket_dir "$sockets" listen_port 6432 auth_type trust \
            auth_file "$sockets/users" admin_users saltern_owner pool_mode "$1" default_pool_size 60 max_client_conn 500
        [[ $1 == session ]] || echo 'max_prepared_statements = 500'
    } >"$folder/pgbouncer.ini"
    chmod 0644 -- "$folder/pgbouncer.ini"
    printf '"%s" ""\n' saltern_app saltern_owner | as_postgres_owner tee "$sockets/users" >/dev/null
    as_postgres_owner setpriv --pdeathsig TERM "$(command -v pgbouncer)" --quiet "$folder/pgbouncer.ini" \
        >"$folder/pgbouncer.log" 2>&1 &
    pooler_pid=$!
    wait_until 180 pooler_answers || fail "PgBouncer to answer: $(cat "$folder/pgbouncer.log")"
}

as_postgres_owner_make() {
    mkdir --mode 0700 -- "$1"
    chown -- "$postgres_owner:$(id -g "$postgres_owner")" "$1"
}

# through_pooler SQL
through_pooler() { psql --no-psqlrc --tuples-only --no-align --dbname "$(pooler_url)" --command "$1"; }

pooler_answers() { through_pooler 'SELECT 1' >/dev/null 2>&1; }

# pooler_url [ROLE DATABASE]
pooler_url() { printf 'postgresql://%s@%s:6432/%s\n' "${1:-saltern_app}" "${folder//\//%2F}%2Fpooler" "${2:-saltern}"; }

stop_pooler() {
    [[ -n $pooler_pid ]] || return 0
    # No client is connected.
    end_process "$pooler_pid" TERM 5 2>/dev/null
    wait "$pooler_pid" 2>/dev/null || true
    pooler_pid=
}

serve_through_pooler() {
    start_own_server "SALTERN_DATABASE_URL=$(pooler_url)" "SALTERN_OWNER_DATABASE_URL=$(postgres_url saltern_owner saltern)" \
        SALTERN_RATE_LIMITS=login=10000/1000,registration=10000/1000,share=10000/1000,share-miss=10000/1000 "$@"
}

# run_scenarios NAME…: those of the others that say most about the database, against this server.
run_scenarios() {
    local name
    for name in "$@"; do
        SALTERN_TEST_EXECUTABLE=$executable bash "$repository/Tests/Integration/$name.sh" >"$folder/$name.log" 2>&1 ||
            fail "$name.sh to pass: $(tail -n 20 "$folder/$name.log") $(grep error "$own_home/run.log" | tail -n 5)"
    done
}

# refused [NAME=VALUE]…: true if the server ends at once; its output is in $work/said.
refused() { ! with_settings "$@" timeout 300 saltern serve >"$work/said" 2>&1; }

command -v pgbouncer >/dev/null || ensure_packages pgbouncer
version=$(pgbouncer --version | sed -n 's/^PgBouncer \([0-9]*\.[0-9]*\).*/\1/p')
postgres_open "$folder/postgres"
postgres_start "$folder/postgres.log" -c max_connections=200
postgres_create_roles

scenario "PgBouncer $version in session mode"
start_pooler session
serve_through_pooler
export SALTERN_TEST_URL SALTERN_TEST_HOME
run_scenarios items credentials
saltern doctor --json >"$work/doctor" || true
[[ $(jq --raw-output '.findings[] | select(.subject == "database_pooling").severity' "$work/doctor") == fine ]] ||
    fail "the doctor to be content: $(cat "$work/doctor")"
saltern purge >/dev/null
stop_own_server

scenario "RECONNECT in its console exchanges sessions of PostgreSQL"
# A client can get another session when PostgreSQL is slow to take the last one back.
keeps() {
    before=$(through_pooler 'SELECT pg_backend_pid()')
    [[ $(through_pooler 'SELECT pg_backend_pid()') == "$before" ]]
}
wait_until 180 keeps || fail "the session to be kept"
psql --no-psqlrc --quiet --dbname "$(pooler_url saltern_owner pgbouncer)" --command RECONNECT
[[ $(through_pooler 'SELECT pg_backend_pid()') != "$before" ]] || fail "another session"
stop_pooler

if [[ $(printf '%s\n' 1.21 "$version" | sort --version-sort | head -n 1) != 1.21 ]]; then
    echo "not run in transaction mode: PgBouncer is $version, and that needs 1.21 or newer"
    exit 0
fi

scenario "in transaction mode nothing is served by mistake"
start_pooler transaction
refused || fail "the server to end"
grep --quiet 'gives each transaction another session' "$work/said" || fail "the reason: $(cat "$work/said")"
if saltern doctor >"$work/doctor" 2>&1; then fail "the doctor to find it"; fi
grep --quiet 'SALTERN_DATABASE_POOLING=transaction' "$work/doctor" || fail "the remedy: $(cat "$work/doctor")"
stop_pooler
start_pooler transaction
refused SALTERN_DATABASE_POOLING=transaction || fail "the server to end"
for name in statement_timeout lock_timeout idle_in_transaction_session_timeout search_path enable_bitmapscan jit; do
    grep --quiet "ALTER ROLE saltern_app SET $name = " "$work/said" || fail "$name: $(cat "$work/said")"
done

scenario "with the role's defaults of the handbook it is"
handbook_block 'PgBouncer sql 1' >"$work/defaults"
psql_as_superuser <"$work/defaults"
stop_pooler
start_pooler transaction
serve_through_pooler SALTERN_DATABASE_POOLING=transaction
export SALTERN_TEST_URL SALTERN_TEST_HOME
saltern doctor --json >"$work/doctor" || true
[[ $(jq --raw-output '.findings[] | select(.subject == "database_pooling").severity' "$work/doctor") == fine ]] ||
    fail "the doctor to be content: $(cat "$work/doctor")"
# What people do most, and what has transactions of its own.
run_scenarios items sync sessions credentials second-factor shares stream

scenario "a purge has one node at a time, and leaves no lock in anybody's session"
saltern purge >/dev/null
locks=$(psql_as_superuser --tuples-only --no-align --command "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
[[ $locks == 0 ]] || fail "no lock, not $locks"

scenario "no session was changed"
for _ in {1..40}; do
    through_pooler "SELECT pg_sleep(0.2), current_setting('lock_timeout'), current_setting('statement_timeout')" &
done | sort | uniq --count >"$work/settings"
[[ $(sed 's/^ *//' "$work/settings") == '40 |5ms|10s' ]] || fail "the role's defaults: $(cat "$work/settings")"

scenario "sessions that PgBouncer has replaced are not missed"
psql_as_superuser --output /dev/null --command \
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'saltern_app'"
register ada
request GET /v1/account
expect_status 200
