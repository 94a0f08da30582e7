#!/usr/bin/env bash
# A standby without the latest changes is promoted: the server notices it itself, and no number is assigned twice. With
# synchronous standbys nothing expires. No acknowledged write goes to a primary that was frozen while its standby was promoted.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/postgres.sh
source "$repository/scripts/lib/postgres.sh"

clusters=$(mktemp --directory --tmpdir saltern-clusters-XXXXXX)
# PostgreSQL's system user must be able to enter it. Only that user and root can reach the sockets.
chmod 0711 -- "$clusters"
postgres_authentication=trust
primary_pid=
primary_sockets=
standby_pid=

# shellcheck disable=SC2317  # the end of the scenario calls them
continue_stopped() {
    local stopped
    for stopped in $standby_pid $primary_pid; do
        is_gone "$stopped" || signal_family CONT "$stopped" || true
    done
}
# shellcheck disable=SC2317
stop_primary() {
    postgres_pid=$primary_pid postgres_sockets=$primary_sockets
    postgres_stop
}
at_end=(continue_stopped stop_own_server postgres_stop stop_primary)
folders_at_end=("$clusters")

make_primary() {
    postgres_open "$clusters/primary"
    postgres_start "$clusters/primary.log"
    postgres_create_roles
}

# make_standby NAME: of the server that runs, which is the primary from here on; postgres_pid, postgres_sockets and
# psql_as_superuser are the standby's.
make_standby() {
    as_postgres_owner tee --append "$postgres_data/pg_hba.conf" >/dev/null <<<'local replication all trust'
    psql_as_superuser --output /dev/null --command 'SELECT pg_reload_conf()'
    primary_pid=$postgres_pid primary_sockets=$postgres_sockets
    mkdir --mode 0700 -- "$clusters/$1"
    chown -- "$postgres_owner:$(id -g "$postgres_owner")" "$clusters/$1"
    as_postgres_owner "$(postgres_tool pg_basebackup)" --host "$primary_sockets" --username postgres \
        --pgdata "$clusters/$1" --write-recovery-conf --checkpoint fast --no-sync
    postgres_data=$clusters/$1
    # It came along, and names the primary's.
    as_postgres_owner rm -- "$postgres_data/saltern-sockets"
    postgres_sockets='' postgres_pid=''
    postgres_start "$clusters/$1.log"
}

on_primary() { psql --no-psqlrc --tuples-only --no-align --host "$primary_sockets" --username postgres --dbname saltern --command "$1"; }

standby_has_all() {
    [[ $(psql_as_superuser --tuples-only --no-align --command "SELECT pg_last_wal_replay_lsn() >= '$position'") == t ]]
}

receives_nothing() { [[ -z $(psql_as_superuser --tuples-only --no-align --command 'SELECT pid FROM pg_stat_wal_receiver') ]]; }

promote() { psql_as_superuser --output /dev/null --command 'SELECT pg_promote()'; }

# database_url ROLE: both servers, whichever of them writes.
database_url() {
    printf 'postgresql://%s@%s,%s/saltern?target_session_attrs=read-write\n' \
        "$1" "${primary_sockets//\//%2F}" "${postgres_sockets//\//%2F}"
}

make_primary
make_standby standby
start_own_server "SALTERN_DATABASE_URL=$(database_url saltern_app)" "SALTERN_OWNER_DATABASE_URL=$(database_url saltern_owner)"

scenario "a phone has everything, and so has the standby"
register ada
create_item
request GET /v1/changes
phone_cursor=$(json .cursor)
position=$(on_primary 'SELECT pg_current_wal_lsn()')
wait_until 180 standby_has_all || fail "the standby to have $position"

scenario "the standby falls behind, and what a laptop writes is acknowledged by the primary alone"
psql_as_superuser --command "ALTER SYSTEM SET primary_conninfo = ''"
psql_as_superuser --output /dev/null --command 'SELECT pg_reload_conf()'
wait_until 180 receives_nothing || fail "the standby to receive nothing any more"
replace_item '"1"'
expect_status 200
expect_header etag '"2"'
request GET /v1/changes
laptop_cursor=$(json .cursor)

scenario "the primary is gone and the standby promoted: what is lost is lost, and nothing of it is given out again"
kill -QUIT "$primary_pid"
wait_until 180 is_gone "$primary_pid" || fail "the primary to have ended"
promote
wait_until 180 on_every_loop item_is_read || fail "the item to be read"
expect_json .body "$content"
wait_until 180 grep --quiet '"event":"time_went_back"' "$own_home/run.log" || fail "the log to tell that time went back"
for cursor in "$phone_cursor" "$laptop_cursor"; do
    request GET "/v1/changes?since=$cursor"
    expect_problem 410 cursor_expired
done
request GET "/v1/items/$id" '' --header 'If-None-Match: "2"'
expect_status 200
replace_item '"2"'
expect_problem 412 precondition_failed
replace_item '"1"'
expect_status 200
(($(json .revision) > 1 << 50)) || fail "a revision above the base"
request GET /v1/changes
cursor=$(json .cursor)

scenario "the old primary comes back, unfenced, and the new one is silent: nothing is written into the time that is lost"
standby_pid=$postgres_pid standby_sockets=$postgres_sockets
primary_pid='' postgres_pid='' postgres_data=$clusters/primary
postgres_start "$clusters/primary.log"
old_sockets=$postgres_sockets old_pid=$postgres_pid
# At the address of the server's URL.
ln --symbolic -- "$old_sockets" "$primary_sockets"
[[ $(on_primary 'SELECT pg_is_in_recovery()') == f ]] || fail "the old primary to take writes"
signal_family STOP "$standby_pid"
# The server answers no request.
tells_of_old_primary() {
    once=yes request GET "/v1/items/$id" '' --max-time 1 2>/dev/null || true
    grep --quiet 'is on an earlier timeline' "$own_home/run.log"
}
wait_until 180 tells_of_old_primary || fail "the log to tell of the old primary"
once=yes replace_item '"1"'
[[ $status == 503 ]] || fail "a write to find no database"
signal_family CONT "$standby_pid"
wait_until 180 on_every_loop item_is_read || fail "the item to be read from the new primary"
[[ $(on_primary 'SELECT max(revision) FROM saltern.items') == 2 ]] || fail "nothing new in the old primary"
end_process "$old_pid" INT 180
wait "$old_pid" 2>/dev/null || true
rm -rf -- "$primary_sockets" "$old_sockets"
postgres_pid=$standby_pid postgres_sockets=$standby_sockets postgres_data=$clusters/standby

scenario "with SALTERN_FAILOVER=synchronous a new timeline expires nothing"
stop_own_server
postgres_sockets_before=$postgres_sockets
end_process "$postgres_pid" INT 180
wait "$postgres_pid" 2>/dev/null || true
postgres_pid=
as_postgres_owner touch "$clusters/standby/standby.signal"
postgres_start "$clusters/standby.log"
rm -rf -- "$postgres_sockets_before"
promote
start_own_server SALTERN_FAILOVER=synchronous "SALTERN_DATABASE_URL=$(database_url saltern_app)" \
    "SALTERN_OWNER_DATABASE_URL=$(database_url saltern_owner)"
wait_until 180 grep --quiet '"event":"failover_without_loss"' "$own_home/run.log" || fail "the log to tell of the failover"
request GET "/v1/changes?since=$cursor"
expect_status 200
expect_json '.changes | length' 0

scenario "a primary is frozen, and let go on when its standby was promoted: loops without requests do not write there either"
stop_own_server
# What it gets from its primary, which is gone.
psql_as_superuser --command "ALTER SYSTEM RESET primary_conninfo"
standby_pid=
make_standby second
start_own_server SALTERN_LOOPS=4 SALTERN_READ_CONNECTIONS=1 SALTERN_COMMIT_CONNECTIONS=1 \
    "SALTERN_DATABASE_URL=$(database_url saltern_app)" "SALTERN_OWNER_DATABASE_URL=$(database_url saltern_owner)"
all_are_connected() { (($(on_primary "SELECT count(*) FROM pg_stat_activity WHERE usename = 'saltern_app'") >= 8)); }
wait_until 180 all_are_connected || fail "all loops to be connected"
item_is_read || fail "the item to be read"
position=$(on_primary 'SELECT pg_current_wal_lsn()')
wait_until 180 standby_has_all || fail "the standby to have $position"
before=$(on_primary 'SELECT count(*) FROM saltern.items')
signal_family STOP "$primary_pid"
promote
promoted() { [[ $(psql_as_superuser --tuples-only --no-align --command 'SELECT pg_is_in_recovery()') == f ]]; }
wait_until 180 promoted || fail "the standby to be promoted"
wait_until 180 on_every_loop item_is_read || fail "the item to be read from the new primary"
signal_family CONT "$primary_pid"
acknowledged=()
write_some() {
    local new
    new=$(uuid)
    once=yes request PUT "/v1/items/$new" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" --header 'If-None-Match: *'
    if [[ $status == 201 ]]; then acknowledged+=("'$new'"); fi
    ((${#acknowledged[@]} >= 40))
}
wait_until 180 write_some || fail "40 items to be written"
[[ $(on_primary 'SELECT count(*) FROM saltern.items') == "$before" ]] || fail "nothing new in the old primary"
found=$(psql --no-psqlrc --tuples-only --no-align --host "$postgres_sockets" --username postgres --dbname saltern --command \
    "SELECT count(*) FROM saltern.items WHERE item_id IN ($(IFS=, && printf '%s' "${acknowledged[*]}"))")
[[ $found == "${#acknowledged[@]}" ]] || fail "all of ${#acknowledged[@]} in the new primary, not $found"
