# shellcheck shell=bash
# A private PostgreSQL: a cluster of our own, a server that lives no longer than the script that started it.
#
# Who may connect. There is no TCP listener. The socket is in a fresh 0700 directory under /tmp (a short path: a socket's
# is limited to 107 bytes, and a clone may lie deeper), so only the cluster's system user and root come near it; and there
# the kernel says who is calling ("peer"): only that user and whoever called the script may be one of the roles. Both can
# read the data files anyway, so a password would protect nothing more.
#
# Who runs it. PostgreSQL refuses to run as root. Called as root, the cluster belongs to the system user `postgres`;
# called as anybody else, to the caller. A cluster that exists is always run as its owner.

postgres_pid=
postgres_data=
postgres_owner=
postgres_sockets=
postgres_authentication='peer map=saltern'

# What would lead our libpq clients somewhere else.
forget_libpq_environment() {
    unset PGHOST PGHOSTADDR PGPORT PGDATABASE PGUSER PGPASSWORD PGPASSFILE PGSERVICE PGSERVICEFILE PGOPTIONS \
        PGSSLMODE PGSSLROOTCERT PGSSLCERT PGSSLKEY PGREQUIRESSL PGTARGETSESSIONATTRS PGCHANNELBINDING PGDATA
}

# postgres_tool NAME: the path of a PostgreSQL program: of the cluster's version when there is a cluster, else the newest.
postgres_tool() {
    local major path
    if [[ -n $postgres_data ]] && major=$(as_postgres_owner cat "$postgres_data/PG_VERSION" 2>/dev/null); then
        path=/usr/lib/postgresql/$major/bin/$1
        [[ -x $path ]] || die "the cluster in $postgres_data was made by PostgreSQL $major, which is not installed any more"
    else
        path=$(printf '%s\n' /usr/lib/postgresql/*/bin/"$1" | sort --version-sort | tail -n 1)
        [[ -x $path ]] || die "found no PostgreSQL under /usr/lib/postgresql"
    fi
    printf '%s\n' "$path"
}

# Runs a command as the owner of the cluster, away from folders that this user may not enter.
as_postgres_owner() (
    cd /
    if [[ $(id -u) == "$postgres_owner" ]]; then
        exec "$@"
    fi
    exec setpriv --reuid "$postgres_owner" --regid "$(id -g "$postgres_owner")" --clear-groups "$@"
)

# postgres_open PLACE: uses the cluster at PLACE, a folder or a link to one, and makes it when there is none.
postgres_open() {
    local place=$1
    forget_libpq_environment
    if [[ -e $place ]]; then
        postgres_data=$(readlink --canonicalize-existing -- "$place")
        postgres_owner=$(stat --format %u -- "$postgres_data")
        is_root || [[ $postgres_owner == "$(id -u)" ]] ||
            die "$place belongs to $(id -un "$postgres_owner"), who is not you: call this as root, or remove it (and its data)"
    elif [[ -L $place ]]; then
        die "$place leads to $(readlink -- "$place"), which is gone; to start with an empty database, remove the link"
    else
        postgres_create "$place"
    fi
}

postgres_create() {
    local place=$1
    postgres_owner=$(id -u)
    if is_root; then
        postgres_owner=$(id -u postgres) || die "there is no system user 'postgres'"
    fi
    if as_postgres_owner test -x "$(dirname -- "$place")"; then
        initialise_cluster "$place"
        return
    fi
    # The system user cannot enter the folder (a clone under /root, say). Its data then lives in that user's own home,
    # and PLACE is a link to it.
    local home
    home=$(as_postgres_owner mktemp --directory "$(getent passwd "$postgres_owner" | cut -d: -f6)/saltern-XXXXXXXX")
    say "$(id -un "$postgres_owner") may not enter $(dirname -- "$place"): its data lives in $home"
    initialise_cluster "$home/data"
    ln --symbolic --no-target-directory -- "$home/data" "$place"
}

# An interrupted initdb must not look like a cluster, so it works beside the final place.
initialise_cluster() {
    local place=$1 unfinished=$1.unfinished initdb
    initdb=$(postgres_tool initdb)
    rm -rf -- "$unfinished"
    mkdir --mode 0700 -- "$unfinished"
    chown -- "$postgres_owner:$(id -g "$postgres_owner")" "$unfinished"
    as_postgres_owner "$initdb" --pgdata "$unfinished" --username postgres --auth peer --encoding UTF8 \
        --locale C.UTF-8 --data-checksums --no-instructions >/dev/null || die "initdb failed"
    mv --no-target-directory -- "$unfinished" "$place"
    postgres_data=$(realpath -- "$place")
}

# postgres_start LOG [-c NAME=VALUE]…: ends a server that a killed script left behind, starts one, waits for it.
postgres_start() {
    local log=$1 server
    shift
    postgres_end_leftover
    postgres_write_authentication
    postgres_sockets=$(mktemp --directory /tmp/saltern-XXXXXXXX)
    as_postgres_owner tee "$postgres_data/saltern-sockets" >/dev/null <<<"$postgres_sockets"
    chown -- "$postgres_owner:$(id -g "$postgres_owner")" "$postgres_sockets"
    server=$(postgres_tool postgres)
    # A session of its own, so that Ctrl-C does not reach it before the server has drained; the death signal, so that
    # it ends (SIGINT: fast shutdown) even when this script is killed outright. Changing the user clears that signal, so
    # a second setpriv asks for it.
    local become=()
    if [[ $(id -u) != "$postgres_owner" ]]; then
        become=(setpriv --reuid "$postgres_owner" --regid "$(id -g "$postgres_owner")" --clear-groups)
    fi
    (
        cd / && exec setsid "${become[@]}" setpriv --pdeathsig INT "$server" -D "$postgres_data" \
            -c listen_addresses= -c unix_socket_directories="$postgres_sockets" -c unix_socket_permissions=0700 \
            -c hba_file="$postgres_data/pg_hba.conf" -c ident_file="$postgres_data/pg_ident.conf" \
            -c logging_collector=off -c log_error_verbosity=terse "$@"
    ) </dev/null >>"$log" 2>&1 9>&- &
    postgres_pid=$!
    if ! wait_until 180 postgres_answers_or_died || is_gone "$postgres_pid"; then
        tail -n 20 "$log" >&2
        die "the private PostgreSQL did not start; its log: $log"
    fi
}

postgres_answers_or_died() {
    is_gone "$postgres_pid" || psql_as_superuser --command 'SELECT 1' >/dev/null 2>&1
}

# The caller's lock is free (or this cluster is brand-new), so a server that still runs here has lost its script.
postgres_end_leftover() {
    local pid sockets
    pid=$(as_postgres_owner head -n 1 "$postgres_data/postmaster.pid" 2>/dev/null) || pid=
    # A number alone proves nothing; a PostgreSQL server works in its data folder.
    if [[ -n $pid && $(readlink "/proc/$pid/cwd" 2>/dev/null) == "$postgres_data" ]]; then
        say "ending the PostgreSQL (process $pid) that an earlier call left behind"
        end_process "$pid" INT 30
    fi
    sockets=$(as_postgres_owner cat "$postgres_data/saltern-sockets" 2>/dev/null) || sockets=
    if [[ $sockets =~ ^/tmp/saltern-[A-Za-z0-9]{8}$ ]]; then
        as_postgres_owner rm -rf -- "$sockets"
    fi
}

postgres_write_authentication() {
    local caller owner role
    caller=$(id -un)
    owner=$(id -un "$postgres_owner")
    as_postgres_owner tee "$postgres_data/pg_hba.conf" >/dev/null <<<"local all all $postgres_authentication"
    for role in postgres saltern_owner saltern_app; do
        printf 'saltern "%s" %s\n' "$caller" "$role"
        [[ $caller == "$owner" ]] || printf 'saltern "%s" %s\n' "$owner" "$role"
    done | as_postgres_owner tee "$postgres_data/pg_ident.conf" >/dev/null
}

psql_as_superuser() {
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --host "$postgres_sockets" --username postgres --dbname postgres "$@"
}

# postgres_url ROLE DATABASE
postgres_url() { printf 'postgresql://%s@%s/%s\n' "$1" "${postgres_sockets//\//%2F}" "$2"; }

# Two login roles: the owner migrates; the application may do what the migrations grant to the group it is in.
postgres_create_roles() {
    psql_as_superuser <<'SQL'
SELECT format('CREATE ROLE %s', definition)
FROM (VALUES
    ('saltern_server', 'saltern_server NOLOGIN'),
    ('saltern_owner', 'saltern_owner LOGIN'),
    ('saltern_app', 'saltern_app LOGIN IN ROLE saltern_server')
) AS role(name, definition)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role.name)
\gexec
SELECT 'CREATE DATABASE saltern OWNER saltern_owner'
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'saltern')
\gexec
REVOKE ALL ON DATABASE saltern FROM PUBLIC;
GRANT CONNECT ON DATABASE saltern TO saltern_server;
SQL
}

postgres_stop() {
    if [[ -n $postgres_pid ]]; then
        end_process "$postgres_pid" INT 60
        wait "$postgres_pid" 2>/dev/null || true
        postgres_pid=
    fi
    if [[ -n $postgres_sockets ]]; then
        rm -rf -- "$postgres_sockets"
        postgres_sockets=
    fi
}

# postgres_remove PLACE: the cluster and everything in it, for throw-away instances.
postgres_remove() {
    local place=$1
    if [[ -L $place ]]; then
        rm -rf -- "$(dirname -- "$(readlink -- "$place")")"
    fi
    rm -rf -- "$place"
}
