# shellcheck shell=bash disable=SC2154
# SC2154: `executable` is set by the script that sources this.
# One running Saltern: its folder, its certificate, its variables, its process.

server_pid=

# settle_home: SALTERN_HOME becomes absolute, exists, and is this script's alone until it ends.
settle_home() {
    local name
    home=$(absolute_path "${SALTERN_HOME:-$repository/.saltern}")
    # The server refuses settings that it does not know, and these are for scripts.
    for name in SALTERN_HOME "${!SALTERN_TEST_@}"; do
        export -n "${name?}"
    done
    # Others may pass through the folder (PostgreSQL's system user has to), and read nothing that is in it.
    if [[ ! -d $home ]]; then
        mkdir --parents -- "$home"
        chmod 0711 -- "$home"
    fi
    [[ -w $home ]] || die "you may not write to $home, which belongs to $(stat --format %U -- "$home")"
    umask 077
    exec 9>>"$home/lock"
    flock --nonblock 9 || die "another scripts/run serves from $home"
}

# default_setting NAME VALUE: NAME as the caller gave it, else what is in the file NAME_FILE, else VALUE; exported.
default_setting() {
    local name=$1 file=$1_FILE
    if [[ -z ${!name:-} && -n ${!file:-} ]]; then
        printf -v "$name" '%s' "$(<"${!file}")"
        unset "$file"
    fi
    export "$name=${!name:-$2}"
}

# settle_listen: where to serve, and the URL that leads there.
settle_listen() {
    default_setting SALTERN_LISTEN 127.0.0.1:8443
    listen_host=${SALTERN_LISTEN%:*}
    listen_port=${SALTERN_LISTEN##*:}
    [[ $SALTERN_LISTEN =~ :[1-9][0-9]{0,4}$ ]] ||
        die "SALTERN_LISTEN must be HOST:PORT, for example 127.0.0.1:8443; it is '$SALTERN_LISTEN'"
    case $listen_host in
        127.* | 0.0.0.0 | '[::1]' | '[::]' | '' | '*' | localhost) url_host=localhost ;;
        # The zone of an address of a link (RFC 6874).
        *) url_host=${listen_host/\%/%25} ;;
    esac
    base_url=https://$url_host:$listen_port
}

# settle_database [-c NAME=VALUE]…: the caller's database, or a private one with an owner's and a server's role.
settle_database() {
    [[ -z ${SALTERN_DATABASE_URL:-}${SALTERN_DATABASE_URL_FILE:-} ]] || return 0
    [[ -z ${SALTERN_OWNER_DATABASE_URL:-}${SALTERN_OWNER_DATABASE_URL_FILE:-} ]] ||
        die "SALTERN_OWNER_DATABASE_URL is set, and SALTERN_DATABASE_URL is not: set both or neither"
    postgres_open "$home/postgres"
    postgres_start "$home/postgres.log" "$@"
    postgres_create_roles
    SALTERN_DATABASE_URL=$(postgres_url saltern_app saltern)
    SALTERN_OWNER_DATABASE_URL=$(postgres_url saltern_owner saltern)
    export SALTERN_DATABASE_URL SALTERN_OWNER_DATABASE_URL
}

settle_certificate() {
    default_setting SALTERN_TLS_DIRECTORY "$home/tls"
    SALTERN_TLS_DIRECTORY=$(absolute_path "$SALTERN_TLS_DIRECTORY")
    certificate=$SALTERN_TLS_DIRECTORY/certificate.pem
    if [[ ! -e $certificate ]]; then
        local names=(--host localhost)
        [[ $url_host == localhost ]] || names+=(--host "$(sed 's/[][]//g; s/%.*//' <<<"$url_host")")
        say "making a certificate in $SALTERN_TLS_DIRECTORY"
        "$executable" certificate create "${names[@]}" >/dev/null
    fi
    pin=$(pin_of "$certificate")
}

settle_master_key() {
    default_setting SALTERN_MASTER_KEY_FILE "$home/master.key"
    SALTERN_MASTER_KEY_FILE=$(absolute_path "$SALTERN_MASTER_KEY_FILE")
    [[ -e $SALTERN_MASTER_KEY_FILE ]] || "$executable" master-key create >/dev/null
}

# write_environment: the file to source so that `saltern` commands talk to this instance.
write_environment() {
    local name
    {
        printf '# Source this, and saltern commands talk to %s. Made anew by every scripts/run.\n' "$base_url"
        while read -r name; do
            printf 'export %s=%q\n' "$name" "${!name}"
        done < <(compgen -A export SALTERN_)
        printf 'export PATH=%q:"$%s"\n' "$(dirname -- "$executable")" PATH
    } >"$home/run.env.new"
    mv -- "$home/run.env.new" "$home/run.env"
}

# A session of its own, so that Ctrl-C reaches it once, from us; the death signal, in case we are killed outright.
start_server() {
    setsid setpriv --pdeathsig TERM "$executable" serve </dev/null 9>&- &
    server_pid=$!
    printf '%s\n' "$server_pid" >"$home/server.pid"
    # Pinned, so it does not matter whether the certificate names this host.
    wait_until 180 server_is_ready_or_gone || die "the server was not ready within 3 minutes"
    ! is_gone "$server_pid" || die "the server ended while starting; what it said is above"
}

server_is_ready_or_gone() { is_gone "$server_pid" || server_is_ready; }

server_is_ready() {
    local host=$listen_host
    case $host in
        0.0.0.0 | '' | '*') host=127.0.0.1 ;;
        '[::]') host='[::1]' ;;
    esac
    curl --silent --fail --noproxy '*' --max-time 5 --insecure --pinnedpubkey "$pin" \
        "https://$host:$listen_port/v1/health/ready" >/dev/null 2>&1
}

# stop_instance: the server first, so that it drains while its database is there. Fails when the server fails.
stop_instance() {
    local status=0 patience=90
    if [[ -n $server_pid ]]; then
        # It bounds its own draining: by 30 s, or by what the caller has set, which is an hour at most.
        [[ -z ${SALTERN_DRAIN_TIMEOUT:-} ]] || patience=3660
        end_process "$server_pid" TERM "$patience"
        wait "$server_pid" 2>/dev/null || status=$?
        server_pid=
        rm -f -- "$home/server.pid"
    fi
    postgres_stop
    return "$status"
}
