#!/usr/bin/env bash
# The package's roles.sql: as a superuser, as the administrator of a managed service, a second time, and where it cannot finish:
# then it prints the reason, and roles and databases are unchanged.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/postgres.sh
source "$repository/scripts/lib/postgres.sh"

folder=$(mktemp --directory --tmpdir saltern-roles-XXXXXX)
# PostgreSQL's system user has to pass through it.
chmod 0711 -- "$folder"
cp -- "$repository/scripts/package.d/roles.sql" "$folder/roles.sql"
blocker=

# shellcheck disable=SC2317  # the end of the scenario calls it
end_blocker() { [[ -z $blocker ]] || kill "$blocker" 2>/dev/null || true; }
at_end=(end_blocker postgres_stop)
folders_at_end=("$folder")

query() { psql_as_superuser --tuples-only --no-align --command "$1"; }

# state: all roles with what they may do and are members of, and all databases with their owners.
state() {
    query "SELECT rolname, rolsuper, rolcanlogin, rolcreaterole, rolcreatedb FROM pg_roles ORDER BY rolname"
    query "SELECT r.rolname, m.rolname FROM pg_auth_members a JOIN pg_roles r ON r.oid = a.roleid
        JOIN pg_roles m ON m.oid = a.member ORDER BY 1, 2"
    query "SELECT datname, pg_get_userbyid(datdba) FROM pg_database ORDER BY 1"
}

# make_roles ROLE [PASSWORD]: types the handbook's words as this role; fills status, body and headers (its errors).
make_roles() {
    status=0
    printf '\\set owner_password %s\n\\set server_password %s\n\\i %s\n' "${2:-first}" "${2:-first}" "$folder/roles.sql" |
        psql --no-psqlrc --quiet --host "$postgres_sockets" --username "$1" --dbname postgres \
            --set ON_ERROR_STOP=1 >"$work/body" 2>"$work/errors" || status=$?
    body=$(<"$work/body")
    headers=$(<"$work/errors")
}

remove_all() {
    query 'DROP DATABASE IF EXISTS saltern'
    query 'DROP ROLE IF EXISTS saltern_app, saltern_owner, saltern_server'
}

# password_of ROLE: what PostgreSQL stores of it.
password_of() { query "SELECT rolpassword FROM pg_authid WHERE rolname = '$1'"; }

# as_role ROLE SQL: in the database saltern.
as_role() {
    psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 --host "$postgres_sockets" --username "$1" \
        --dbname saltern --command "$2" 2>&1
}

# works ROLE: it makes the roles and the database, twice; the second time the passwords are the new ones.
works() {
    local before first
    make_roles "$1"
    [[ $status == 0 && -z $body$headers ]] || fail "roles and database by $1, without a word"
    first=$(password_of saltern_app)
    before=$(state)
    make_roles "$1" second
    [[ $status == 0 && -z $body$headers ]] || fail "the same a second time by $1"
    [[ $(state) == "$before" ]] || fail "roles and databases as after the first time"
    [[ $(password_of saltern_app) != "$first" ]] || fail "the new password"
    as_role saltern_owner 'CREATE SCHEMA made' >/dev/null || fail "an owner who makes a schema"
    body=$(as_role saltern_app 'CREATE SCHEMA made_too') && fail "a server's role that makes no schema"
    [[ $(as_role saltern_app 'SELECT 1') == 1 ]] || fail "a server's role that connects"
    body=$(as_role stranger 'SELECT 1') && fail "no connection of another role"
    [[ $body == *'permission denied for database'* ]] || fail "a refusal of the database"
    remove_all
}

# refuses ROLE WORDS: roles.sql prints these words and changes nothing.
refuses() {
    local before
    before=$(state)
    make_roles "$1"
    [[ $status != 0 && $headers == *"$2"* && $headers == *'HINT: '* ]] || fail "a refusal with: $2"
    [[ $(state) == "$before" ]] || fail "roles and databases as before: $(diff <(echo "$before") <(state))"
}

postgres_open "$folder/data"
postgres_authentication=trust
postgres_start "$folder/postgres.log"
query "CREATE ROLE administrator LOGIN CREATEROLE CREATEDB"
query "CREATE ROLE aloof LOGIN NOINHERIT CREATEROLE CREATEDB"
query "CREATE ROLE half LOGIN CREATEROLE"
query "CREATE ROLE stranger LOGIN"

scenario "a superuser makes roles and database, twice"
works postgres

scenario "the administrator of a managed PostgreSQL, who is no superuser, does the same"
works administrator

scenario "and so does one that inherits no rights"
works aloof

scenario "who may not do all of it does none of it"
refuses stranger 'the role "stranger" may not create roles'
refuses half 'the role "half" may not create databases'

scenario "a database of that name that belongs to another role, or has another encoding, is left alone"
query 'CREATE DATABASE saltern OWNER stranger'
refuses administrator 'belongs to the role "stranger"'
refuses postgres 'belongs to the role "stranger"'
remove_all
query 'CREATE ROLE saltern_owner'
query "CREATE DATABASE saltern OWNER saltern_owner ENCODING LATIN1 LOCALE 'C' TEMPLATE template0"
refuses postgres 'has the encoding LATIN1'
remove_all

scenario "a database that cannot be created leaves no role behind, and roles that were there stay"
query 'ALTER DATABASE template0 ALLOW_CONNECTIONS true'
psql --no-psqlrc --quiet --host "$postgres_sockets" --username postgres --dbname template0 --command 'SELECT pg_sleep(300)' \
    >/dev/null 2>&1 &
blocker=$!
is_blocked() { [[ $(query "SELECT count(*) FROM pg_stat_activity WHERE datname = 'template0'") == 1 ]]; }
wait_until 180 is_blocked || fail "a session in template0"
refuses administrator 'was not created'
[[ $headers == *'template0" is being accessed'* ]] || fail "the reason"
query 'CREATE ROLE saltern_server NOLOGIN'
refuses postgres 'was not created'
kill "$blocker"
wait "$blocker" 2>/dev/null || true
blocker=
query "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'template0'" >/dev/null
is_free() { ! is_blocked; }
wait_until 180 is_free || fail "no session in template0"
query 'ALTER DATABASE template0 ALLOW_CONNECTIONS false'
works postgres
