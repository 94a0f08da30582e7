#!/usr/bin/env bash
# The life of an installation in containers. Called by scripts/compose, in namespaces of its own, with the folder that has
# the images' parts and a copy of the repository, and whether all is to be shown.

place=$1
all=$2
SALTERN_TEST_URL=https://api.example.org:8443
SALTERN_TEST_HOME=$place/home
mkdir --parents -- "$SALTERN_TEST_HOME/tls"

# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "$(readlink --canonicalize -- "${BASH_SOURCE[0]}")")/../../Tests/Integration/lib.sh"
# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"
parts=$repository/scripts/compose.d

# shellcheck disable=SC2317  # the trap calls it
finish_life() {
    local result=$?
    trap - EXIT
    ((result == 0)) || docker-compose logs --tail 30 >&2 || true
    docker-compose down --volumes --timeout 20 >/dev/null 2>&1 || true
    end_process "$engine" TERM 180 || true
    (exit "$result") || finish
    finish
}

start_engine() {
    export DOCKER_HOST=unix://$place/engine/socket DOCKER_BUILDKIT=0
    ip link set lo up
    mkdir -- "$place/engine"
    dockerd --data-root "$place/engine/data" --exec-root "$place/engine/run" --pidfile "$place/engine/pid" \
        --host "$DOCKER_HOST" >"$place/engine/log" 2>&1 &
    engine=$!
    trap finish_life EXIT
    wait_until 180 engine_answers_or_is_gone
    docker version >/dev/null || die "Docker does not start: $(tail -n 5 "$place/engine/log")"
}

engine_answers_or_is_gone() { is_gone "$engine" || docker version >/dev/null 2>&1; }

# build_image NAME FOLDER: of the Dockerfile that is on standard input.
build_image() {
    docker build --network none --tag "$1" --file - "$2" >"$place/build.log" 2>&1 || die "$1: $(tail -n 20 "$place/build.log")"
}

make_images() {
    say "making the images that others build on"
    docker import "$place/debian.tar" debian:bookworm-slim >/dev/null
    docker import "$place/postgres.tar" postgres:files >/dev/null
    local bin=/usr/lib/postgresql/15/bin
    build_image postgres:15-bookworm "$parts" <<DOCKERFILE
FROM postgres:files
ENV PATH=$bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PGDATA=/var/lib/postgresql/data
RUN install --directory --owner postgres --group postgres --mode 1777 /var/lib/postgresql/data && mkdir /docker-entrypoint-initdb.d
COPY postgres-entrypoint /usr/local/bin/
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["postgres-entrypoint"]
CMD ["postgres"]
DOCKERFILE
    build_image swift:6.3-bookworm "$place/swift" <<'DOCKERFILE'
FROM debian:bookworm-slim
COPY . /built/
RUN dpkg --install /built/packages/*.deb && mv /built/swift /usr/local/bin/ && ln --symbolic /bin/true /usr/local/bin/strip
DOCKERFILE
}

# type_block NAME [LINES]: the handbook's commands, or these lines of them ("1,2"), each of which succeeds.
type_block() {
    local line
    while read -r line <&3; do
        [[ -z $line ]] || eval "$line" 2>"$place/typed" || fail "to succeed: $line: $(tail -n 20 "$place/typed")"
    done 3< <(handbook_block "$1" | sed --quiet "${2:-1,\$}p")
}

# A user has a terminal, which is missing here.
docker-compose() {
    if [[ $1 == exec ]]; then set -- exec -T "${@:2}"; fi
    command docker-compose "$@"
}

# admin COMMAND…: as in the handbook, for all its commands.
admin() { docker-compose run --rm admin "$@" 2>"$place/admin.log" || fail "admin $* to succeed: $(tail -n 5 "$place/admin.log")"; }

# Not by docker-compose, which needs most of a second of a processor to say so.
container() {
    docker ps --all --quiet --filter "label=com.docker.compose.service=$1" --filter label=com.docker.compose.oneoff=False
}

is_healthy() { [[ $(docker inspect --format '{{.State.Status}} {{.State.Health.Status}}' "$(container "$1")") == 'running healthy' ]]; }

await_health() { wait_until 180 is_healthy "$1" || fail "$1 to be healthy: $(docker-compose logs --tail 20 "$1")"; }

# Its certificate, for curl.
fetch_certificate() { docker cp "$(container server):/var/lib/saltern/tls/certificate.pem" "$certificate" >/dev/null; }

# serves PIN: true if a client with this pin can connect.
serves() {
    curl --silent --show-error --insecure --pinnedpubkey "$1" --output /dev/null "$SALTERN_TEST_URL/v1/service" 2>/dev/null
}

install_it() {
    scenario "it is built and started by the handbook's commands"
    type_block 'Docker Compose 1' >"$place/installed"
    await_health server
    # Registration is closed until it is opened.
    echo SALTERN_REGISTRATION=open >>.env
    docker-compose up --detach 2>/dev/null
    await_health server
    mapfile -t pins < <(grep --only-matching 'sha256//[A-Za-z0-9+/=]*' "$place/installed")
    ((${#pins[@]} == 2)) || fail "two pins: $(<"$place/installed")"
    serves "${pins[0]}" || fail "the server to have the active key"
    fetch_certificate
}

use_it() {
    scenario "people register, log in and store"
    bash "$repository/Tests/Integration/registration.sh" >"$place/registration.log" 2>&1 || fail "registration: $(tail "$place/registration.log")"
    register ada
    create_item
    log_in "$userid" "$password_key"
    [[ $(admin account list) == *"$userid"* ]] || fail "the admin to see the account"
}

# still_there ID: a log-in returns the stored item.
still_there() {
    log_in "$userid" "$password_key"
    request GET "/v1/items/$1"
    expect_status 200
}

# settings_of CONTAINER…: what there is set, but for where and as whom the database is asked.
settings_of() {
    "$@" env | tr -d '\r' | grep '^SALTERN_' | grep --invert-match '^SALTERN_\([A-Z]*_*DATABASE_URL_FILE\|ACTOR\)=' | sort
}

# agree NAME=VALUE: the server and the commands have the same settings, and this among them.
agree() {
    settings_of docker-compose exec server >"$place/server.settings"
    settings_of docker-compose run --rm --no-deps --entrypoint '' admin >"$place/admin.settings" 2>"$place/admin.log"
    diff "$place/server.settings" "$place/admin.settings" >"$place/difference" ||
        fail "server and commands to have the same settings: $(<"$place/difference")"
    grep --quiet --line-regexp --fixed-strings -- "$1" "$place/server.settings" || fail "$1: $(<"$place/server.settings")"
}

set_it() {
    scenario "a setting is for the server and for every command, and each setting can be set"
    create_item
    request DELETE "/v1/items/$id" '' --header 'If-Match: *'
    expect_status 200
    in_database "UPDATE saltern.items SET updated_at = now() - interval '200 days' WHERE item_id = '$id'"
    type_block 'Docker Compose 2'
    await_health server
    agree SALTERN_TOMBSTONE_RETENTION=400d
    admin purge >/dev/null
    [[ $(rows_of "$id") == 1 ]] || fail "a tombstone that is kept for longer"
    sed --in-place '/TOMBSTONE/d; s/^SALTERN_REGISTRATION=.*/SALTERN_REGISTRATION=open/' .env
    admin purge >/dev/null
    [[ $(rows_of "$id") == 0 ]] || fail "a tombstone that is purged by default"
    docker-compose up --detach 2>/dev/null
    await_health server
    create_item
}

# in_database SQL
in_database() {
    docker-compose exec --user postgres postgres psql --quiet --tuples-only --no-align --command "$1" saltern 2>/dev/null |
        tr -d '\r'
}

# rows_of ID: how many rows that item has, as a tombstone or not.
rows_of() { in_database "SELECT count(*) FROM saltern.items WHERE item_id = '$1'"; }

look_at_containers() {
    scenario "containers have the limits that the files say"
    local name id
    for name in postgres server; do
        id=$(container "$name")
        [[ $(docker inspect --format '{{.HostConfig.LogConfig.Type}} {{index .HostConfig.LogConfig.Config "max-size"}}' "$id") == \
            'json-file 50m' ]] || fail "rotated logs of $name"
        [[ $(docker inspect --format '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}' "$id") == 'true [ALL]' ]] ||
            fail "$name without rights"
        # As the kernel reports it: no program gains rights by a file.
        docker-compose exec "$name" grep --quiet 'NoNewPrivs:.*1' /proc/1/status || fail "$name to gain no rights"
    done
    [[ $(docker-compose exec server id --user) == 10001 ]] || fail "the server as a user of its own"
    docker-compose exec server grep --quiet 'CapEff:.*0000000000000000' /proc/1/status || fail "the server without capabilities"
    for name in / /var/lib/saltern/keys /var/lib/saltern/tls; do
        if docker-compose exec server touch "$name/written" 2>/dev/null; then fail "$name not to be written"; fi
    done
    docker-compose exec server touch /tmp/written
    for name in 'certificate rotate' 'master-key rotate'; do
        # shellcheck disable=SC2086  # words of a command
        if docker-compose exec server saltern $name >"$place/refused" 2>&1; then fail "the server's container to refuse $name"; fi
    done
    [[ -z $(docker run --rm --user root --entrypoint find saltern / -xdev \( -name '*.swift' -o -name '*Tests' -o -name Migrations \) -not -path '/proc/*') ]] ||
        fail "an image without sources and tests"
    # No way out of the database's network.
    [[ $(docker network inspect --format '{{.Internal}}' saltern_database) == true ]] || fail "a network of its own"
    docker-compose logs --no-color server >"$place/logged" 2>&1
    grep --quiet '"event":"' "$place/logged" || fail "a log of lines of JSON"
}

watch_it() {
    scenario "metrics are there, for this machine"
    # As Prometheus does with the handbook's words: there, by that name, and with this certificate as all that it trusts.
    local block name target
    block=$(handbook_block 'Metrics yaml 1')
    name=$(sed -n 's/^ *server_name: //p' <<<"$block") target=$(sed -n 's/.*targets: \["\(.*\)"\]/\1/p' <<<"$block")
    curl --silent --show-error --cacert "$certificate" --connect-to "$name:${target##*:}:$target" --output "$place/metrics" \
        "https://$name:${target##*:}/metrics" || fail "metrics with the name of the certificate"
    grep --quiet ^saltern_build_info "$place/metrics" || fail "metrics"
    [[ $(docker inspect --format '{{(index (index .NetworkSettings.Ports "9464/tcp") 0).HostIp}}' "$(container server)") == 127.0.0.1 ]] ||
        fail "metrics at this machine's address alone"
    admin doctor >"$place/doctor"
    ! grep --quiet '^ *problem' "$place/doctor" || fail "a doctor without problems: $(<"$place/doctor")"
}

rotate_keys() {
    scenario "keys are rotated while it serves"
    admin certificate rotate >/dev/null
    docker-compose kill -s HUP server 2>/dev/null
    wait_until 180 serves "${pins[1]}" || fail "the backup key to be served"
    mapfile -t pins < <(admin certificate pins | grep --only-matching 'sha256//[A-Za-z0-9+/=]*')
    admin certificate renew >/dev/null
    docker-compose kill -s HUP server 2>/dev/null
    fetch_certificate
    wait_until 180 serves "${pins[0]}" || fail "the key to stay"
    admin master-key rotate >/dev/null
    docker-compose kill -s HUP server 2>/dev/null
    admin master-key reseal >/dev/null
    admin master-key prune >/dev/null
    still_there "$id"
}

change_the_host() {
    scenario "another host name gets a certificate for the same key"
    local name
    # Back to the name by which the requests below go.
    for name in sync.example.org api.example.org; do
        sed --in-place "s/^SALTERN_HOST=.*/SALTERN_HOST=$name/" .env
        docker-compose up --detach 2>/dev/null
        docker-compose restart server 2>/dev/null
        await_health server
        fetch_certificate
        openssl x509 -in "$certificate" -noout -checkhost "$name" | grep --quiet 'does match' ||
            fail "a certificate of the name $name"
        serves "${pins[0]}" || fail "the key to stay"
    done
    still_there "$id"
}

back_up_and_restore() {
    scenario "a backup comes back"
    local backup later
    admin backup backups >/dev/null
    backup=$(docker run --rm --entrypoint ls --volume saltern_backups:/backups saltern /backups)
    [[ $backup == *.backup ]] || fail "one backup: $backup"
    later=$id
    create_item
    docker-compose stop server 2>/dev/null
    docker-compose exec --user postgres postgres psql --quiet --command 'DROP SCHEMA saltern CASCADE' saltern 2>/dev/null
    admin restore "backups/$backup" >/dev/null
    docker-compose start server 2>/dev/null
    await_health server
    still_there "$later"
    request GET "/v1/items/$id"
    expect_status 404
    id=$later
}

start_again() {
    scenario "it is taken down and started again"
    docker-compose down 2>/dev/null
    docker-compose up --detach 2>/dev/null
    await_health server
    serves "${pins[0]}" || fail "the same key"
    still_there "$id"
    # A container that is killed is started by Docker.
    docker kill --signal KILL "$(container server)" >/dev/null
    docker start "$(container server)" >/dev/null
    await_health server
    still_there "$id"
}

remember_secrets() {
    scenario "secrets of 0.9.0 get what they lack"
    rm -- secrets/superuser-database-url
    scripts/docker/make-secrets 2>/dev/null
    admin doctor >/dev/null
    if scripts/docker/make-secrets 2>/dev/null; then fail "secrets not to be made twice"; fi
}

add_a_standby() {
    scenario "an installation gets a standby"
    type_block 'A standby with Docker Compose 1' '1,2'
    type_block 'A standby with Docker Compose 2' >/dev/null
    type_block 'A standby with Docker Compose 1' '3'
    await_health server
    still_there "$id"
    create_item
    has_a_standby || fail "a synchronous standby"
    agree SALTERN_FAILOVER=synchronous
}

lose_the_primary() {
    scenario "the standby takes over, with what was acknowledged"
    type_block 'Promote the standby 1' >/dev/null
    wait_until 180 is_ready || fail "the service to be ready"
    still_there "$id"
    create_item
    docker-compose run --rm --no-deps admin backup backups >/dev/null 2>&1 || fail "a backup of the new primary"
}

begin_with_a_standby() {
    scenario "an installation has a standby from its first start on"
    docker-compose down --volumes 2>/dev/null
    rm -r secrets
    unset COMPOSE_FILE
    type_block 'A standby with Docker Compose 1'
    await_health server
    fetch_certificate
    register ada
    create_item
    has_a_standby || fail "a synchronous standby"
}

live_with_a_standby() {
    remember_secrets
    add_a_standby
    lose_the_primary
    begin_with_a_standby
}

has_a_standby() {
    [[ $(docker-compose exec --user postgres postgres psql --quiet --tuples-only --no-align \
        --command 'SELECT application_name, sync_state FROM pg_stat_replication') == 'standby|sync' ]]
}

main() {
    start_engine
    cp -- /etc/hosts "$place/hosts"
    echo '127.0.0.1 api.example.org' >>"$place/hosts"
    mount --bind "$place/hosts" /etc/hosts
    make_images
    cd -- "$place/saltern"
    local most
    most=$(ulimit -Hn)
    if ((most < 65536)); then
        say "no process may have more than $most descriptors here, so the server has those"
        sed --in-place "s/nofile: 65536/nofile: $most/" docker-compose.yml
    fi
    install_it
    use_it
    set_it
    look_at_containers
    watch_it
    rotate_keys
    change_the_host
    back_up_and_restore
    start_again
    [[ -z $all ]] || live_with_a_standby
    say "everything holds in containers"
}

main
