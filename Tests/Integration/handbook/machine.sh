# shellcheck shell=bash disable=SC2154
# Parts of a machine that this test replaces: systemd, other users, an editor, Docker. The commands are still checked.

systemctl() {
    case $* in
        'reload saltern')
            local reloads
            reloads=$(grep --count _reloaded "$own_home/run.log") || true
            kill -HUP "$(own_server_process)"
            # The certificate and the master key.
            wait_until 180 has_reloaded $((reloads + 2)) || fail "the server to reload: $(tail -n 3 "$own_home/run.log")"
            ;;
        'restart saltern') stop_own_server && serve ;;
        'stop saltern')
            stop_own_server
            # The machine that a backup is restored on is a new one.
            [[ -z $backup ]] || forget_database
            ;;
        'start saltern') serve ;;
        'enable --now saltern') serve_packaged ;;
        *) fail "a word of systemctl that the handbook may say, not: $*" ;;
    esac
}

has_reloaded() { (($(grep --count _reloaded "$own_home/run.log") >= $1)); }

forget_database() {
    psql_as_superuser --command 'DROP DATABASE saltern' --command 'DROP ROLE saltern_owner, saltern_app, saltern_server'
}

# sudo -u USER COMMAND…
sudo() {
    shift 2
    if [[ $1 == psql ]]; then set -- psql --no-psqlrc --quiet --host "$postgres_sockets" --username postgres "${@:2}"; fi
    "$@"
}

# serve_once COMMAND…: a server, which is given some time to be ready, and ended.
serve_once() {
    : >"$work/served"
    "$@" 2>"$work/served" &
    local pid=$!
    wait_until 60 grep --quiet server_started "$work/served" || fail "the server to start: $(<"$work/served")"
    end_process "$pid" TERM 40
}

# saltern WORD…: with the server's settings, unless the block has them.
saltern() {
    local result=0
    (
        [[ -n ${types_settings:-} ]] || source_environment
        unset "${!SALTERN_TEST_@}"
        exec "$executable" "$@"
    ) </dev/null >>"$work/said" 2>&1 || result=$?
    ((result == 0)) || fail "saltern $* to succeed: $(tail -n 5 "$work/said")"
}

# The package's own, with its folders here; only whose files they become is another's test.
saltern-admin() {
    (
        if [[ $1 == setup ]]; then
            shift
            sed "s|/etc/saltern|$folder/etc|; s|/usr/share/saltern|$repository/scripts/package.d|
                s|setpriv .*init-groups|env PGHOST=$postgres_sockets PGUSER=postgres|" \
                "$repository/scripts/package.d/setup" | sh -s -- "$@"
            exit
        fi
        unset "${!SALTERN_@}"
        sed "s|/etc/saltern|$folder/etc|; s|/var/lib/saltern|$folder/lib|; s|setpriv .* saltern |saltern |; s|^\[ .* -eq 0 \].*||" \
            "$repository/scripts/package.d/saltern-admin" | sh -s "$@"
    ) >>"$work/said" 2>&1 || fail "saltern-admin $* to succeed: $(tail -n 5 "$work/said")"
}

source_environment() {
    # shellcheck source=/dev/null
    source "$own_home/run.env"
}

curl() {
    command curl --silent --show-error --noproxy '*' --max-time 30 --cacert "$certificate" "$@"
}

# apt-get install NAME…: what is named is what the scripts install, which the tests run on.
apt-get() {
    local name
    for name in "${@:2}"; do
        if [[ $name == ./* ]]; then
            [[ $name == "./saltern_$(<"$repository/Sources/saltern/VERSION")_amd64.deb" ]] || fail "this version's package, not $name"
        else
            is_installed "$name" || fail "a package that is here, not $name"
        fi
    done
}

# swift WORD…: with those options of a release build that change what it does; the others make every build the same bytes.
swift() {
    local words="build ${release_options[*]:0:4} --product saltern --static-swift-stdlib"
    [[ " ${release_options[*]} " == *" --static-swift-stdlib "* ]] || fail "a release build to have the runtime in it"
    [[ $* == "$words" ]] || fail "the words $words, not $*"
}

install() {
    case ${*: -1} in
        /usr/local/bin/) set -- "$executable" "$folder/bin/" ;;
        /usr/local/sbin/) set -- "${@:1:$#-1}" "$folder/bin/" ;;
    esac
    command install "$@"
}

useradd() {
    is_root || return 0
    mkdir --parents -- "$folder/users/etc"
    touch "$folder"/users/etc/{passwd,shadow,group,gshadow}
    command useradd --prefix "$folder/users" "$@" 2>>"$work/said" || fail "useradd to know $*"
}

# What the package's settings need at least.
editor() {
    sed --in-place "s|^#SALTERN_SALT_PREFIX=.*|SALTERN_SALT_PREFIX=org.example.notes:|; s|/var/lib/saltern|$folder/lib|
        s|^SALTERN_LISTEN=.*|SALTERN_LISTEN=127.0.0.1:$(free_port)|" "$1"
}

# As systemd starts it.
serve_packaged() {
    local settings
    mapfile -t settings < <(grep '^[A-Z]' "$folder/etc/saltern.conf")
    serve_once env "${settings[@]}" SALTERN_DATABASE_URL_FILE="$folder/etc/database-url" "$executable" serve
}

# docker-compose WORD…: the real one reads the files and the words, and then misses a Docker; services are looked at here.
docker-compose() {
    local said service files=$folder/services-${COMPOSE_FILE:-}
    said=$(DOCKER_HOST=tcp://127.0.0.1:1 command docker-compose "$@" 2>&1) && fail "docker-compose without a Docker"
    [[ $said == *'Connection refused'* || $said == *"Couldn't connect"* ]] || fail "docker-compose to know $*: $said"
    [[ -e $files ]] || command docker-compose config --services >"$files"
    case "$*" in
        'run '* | 'exec '*) service=$(sed --regexp-extended 's/^[a-z]+ ((--rm|--no-deps|--user [a-z]+) )*//; s/ .*//' <<<"$*") ;;
        'stop '* | 'rm --force --stop '* | 'kill -s HUP '* | 'up --detach '*) service=${*: -1} ;;
        'up --detach' | 'build --pull --no-cache' | 'build --pull') return 0 ;;
        *) fail "a word of docker-compose that the handbook may say, not: $*" ;;
    esac
    grep --quiet --line-regexp -- "$service" "$files" || fail "a service $service, not only: $(<"$files")"
}

# Nothing but the removal of a volume that the files name.
docker() {
    [[ $* == 'volume rm saltern_'* ]] || fail "a word of docker that the handbook may say, not: $*"
    command docker-compose config --volumes | grep --line-regexp -- "${3#saltern_}" >/dev/null || fail "a volume ${3#saltern_}"
}

# is_said_by_script COMMAND: the script knows the options, and what --only names.
is_said_by_script() {
    local words word script
    read -ra words <<<"$1"
    script=$repository/${words[0]}
    [[ -x $script ]] || return 1
    for word in "${words[@]:1}"; do
        grep --quiet --recursive --fixed-strings -- "${word%%,*}" "$script" "$script.d" || return 1
    done
}
