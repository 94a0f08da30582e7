# shellcheck shell=bash disable=SC2034,SC2154
# A cluster of PostgreSQL with Citus for tests: a coordinator and two workers.

# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"

cluster_directory=
cluster_port=
cluster_missing=
cluster_tools=${SALTERN_CITUS:-$repository/../shared/citus}

# cluster_is_to_be_had: false with the missing part in cluster_missing.
cluster_is_to_be_had() {
    if [[ ! -x $cluster_tools/cluster ]]; then
        cluster_missing="there is no $cluster_tools/cluster (SALTERN_CITUS says where to look)"
    elif ! compgen -G '/usr/lib/postgresql/*/lib/citus.so' >/dev/null; then
        cluster_missing="Citus is not installed: run $cluster_tools/build"
    else
        return 0
    fi
    return 1
}

# cluster_url PORT ROLE [DATABASE]
cluster_url() { printf 'postgresql://%s@127.0.0.1:%s/%s\n' "$2" "$1" "${3:-saltern}"; }

# What is on standard input, as superuser at the coordinator.
cluster_psql() {
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --output /dev/null "$(cluster_url "$cluster_port" postgres)"
}

# Starts it, with the roles of the schema's owner and of the server.
cluster_start() {
    cluster_directory=$(mktemp --directory --tmpdir saltern-citus-XXXXXX)
    # The system user that PostgreSQL runs as has to pass through it.
    chmod 0711 -- "$cluster_directory"
    local attempt
    for attempt in 1 2 3; do
        cluster_port=$(free_ports 3)
        if "$cluster_tools/cluster" start "$cluster_directory/$attempt" "$cluster_port" >/dev/null; then
            cluster_directory=$cluster_directory/$attempt
            break
        fi
        "$cluster_tools/cluster" stop "$cluster_directory/$attempt" || true
        ((attempt < 3)) || die "the cluster did not start"
    done
    cluster_set_up | cluster_psql
}

# The handbook's words for a cluster, of these nodes, with the roles of "Roles and database" where it says so.
cluster_set_up() {
    handbook_block 'Roles and database sql 1' | grep '^CREATE ROLE' >"$cluster_directory.roles"
    handbook_block 'Set up a cluster sql 1' | sed "s/'10\.0\.0\.\([123]\)', 5432/'127.0.0.1', $((cluster_port - 1)) + \1/
        /^-- Here the three roles/r $cluster_directory.roles"
    # For this session alone: on a busy machine a node may need longer to let another one in.
    echo "SET citus.node_connection_timeout = '30s';"
}

# cluster_node_psql NUMBER DATABASE SQL…: as superuser at one of the nodes, each text by itself.
cluster_node_psql() {
    local url sql commands=()
    url=$(cluster_url $((cluster_port + $1)) postgres "$2")
    for sql in "${@:3}"; do commands+=(--command "$sql"); done
    PGOPTIONS='-c client_min_messages=warning' psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --output /dev/null \
        "${commands[@]}" "$url"
}

# cluster_make_database NAME: an empty one on all nodes, which know each other in it. With two pieces of each table on each
# worker: every one is a table more to be made.
cluster_make_database() {
    local node
    for node in 0 1 2; do
        cluster_node_psql "$node" postgres "CREATE DATABASE $1 OWNER saltern_owner"
        cluster_node_psql "$node" "$1" 'CREATE EXTENSION citus'
    done
    cluster_node_psql 0 postgres "ALTER DATABASE $1 SET citus.shard_count = 4"
    cluster_node_psql 0 "$1" "SET citus.node_connection_timeout = '30s'" "SELECT citus_set_coordinator_host('127.0.0.1', $cluster_port)" \
        "SELECT citus_add_node('127.0.0.1', $((cluster_port + 1)))" "SELECT citus_add_node('127.0.0.1', $((cluster_port + 2)))"
}

cluster_drop_database() {
    local node
    # PostgreSQL waits five seconds for the sessions that it ends.
    for node in 0 1 2; do
        wait_until 180 cluster_node_psql "$node" postgres "DROP DATABASE IF EXISTS $1 WITH (FORCE)" || return 1
    done
}

# cluster_ask NUMBER SQL: what a node answers the superuser.
cluster_ask() {
    psql --no-psqlrc --quiet --tuples-only --no-align "$(cluster_url $((cluster_port + $1)) postgres)" --command "$2"
}

# cluster_as_postgres COMMAND…: as the user whose files those of the nodes are.
cluster_as_postgres() (
    cd /
    if is_root; then exec runuser -u postgres -- "$@"; else exec "$@"; fi
)

cluster_pg_ctl_program() { printf '%s\n' /usr/lib/postgresql/*/bin/pg_ctl | sort --version-sort | tail -n 1; }

# cluster_pg_ctl NUMBER WORD…
cluster_pg_ctl() {
    cluster_as_postgres "$(cluster_pg_ctl_program)" --pgdata "$cluster_directory/$1" --log "$cluster_directory/$1.log" \
        --wait --silent --timeout 180 "${@:2}"
}

# cluster_start_words NUMBER: what starts a node that was killed, for a shell to split.
cluster_start_words() {
    local words=() data=$cluster_directory/$1
    if is_root; then words=(runuser -u postgres --); fi
    words+=("$(cluster_pg_ctl_program)" --pgdata "$data" --log "$data.log" --wait --silent start)
    printf '%q ' "${words[@]}"
}

cluster_stop() {
    [[ -n $cluster_directory ]] || return 0
    "$cluster_tools/cluster" stop "$cluster_directory" || true
    case $cluster_directory in
        */saltern-citus-*) rm -rf -- "${cluster_directory%/[0-9]}" ;;
    esac
    cluster_directory=
}
