#!/usr/bin/env bash
# Runs in a fresh Debian, as root: the package is installed, serves, is upgraded, and removed. The first process is not systemd,
# so the script applies the unit's options itself: the same user, settings, folder and arguments.
set -euo pipefail

# shellcheck source=scripts/package.d/inside.sh
source /packages/inside.sh

server=

# start_server [WORD…]: by this command, which becomes it.
start_server() {
    local settings
    mapfile -t settings < <(grep '^[A-Z]' /etc/saltern/saltern.conf)
    install --owner saltern --mode 0400 /etc/saltern/database-url /run/saltern-database-url
    [[ $(sed -n 's/^ExecStart=//p' /lib/systemd/system/saltern.service) == '/usr/bin/saltern serve' ]] || fail "the unit to serve"
    (cd "$(sed -n 's/^WorkingDirectory=//p' /lib/systemd/system/saltern.service)" &&
        exec setpriv --reuid saltern --regid saltern --init-groups --no-new-privs --bounding-set=-all env --ignore-environment \
            PATH=/usr/bin "${settings[@]}" SALTERN_DATABASE_URL_FILE=/run/saltern-database-url "$@" /usr/bin/saltern serve) &
    server=$!
    cd /
    for _ in {1..900}; do
        ! saltern-admin health --ready >/dev/null 2>&1 || return 0
        kill -0 "$server" || fail "the server to go on"
        sleep 0.2
    done
    fail "the server to be ready within three minutes"
}

stop_server() {
    kill -TERM "$server"
    wait "$server" || fail "the server to end well"
}

# Calls that the unit forbids and the server makes, and the reason why it continues when they fail.
declare -A refused=(
    [setpriority]="libdispatch's threads would be at another priority"
)

refused_calls() { (IFS=, && echo "${!refused[*]}"); }

# group_of_calls NAME: all of them, also those of groups in it.
group_of_calls() {
    local name
    while read -r name; do
        case $name in
            '#'* | "$1") ;;
            @*) group_of_calls "$name" ;;
            *) echo "$name" ;;
        esac
    done < <(systemd-analyze syscall-filter "$1")
}

# calls_of WORD…: of a line of the unit.
calls_of() {
    local word
    for word; do
        if [[ $word == @* ]]; then group_of_calls "$word"; else echo "$word"; fi
    done
}

# require_allowed_calls: what the traced server called is what the unit's filter allows.
require_allowed_calls() {
    local line words call
    for _ in {1..1800}; do
        ! grep --quiet total /tmp/calls || break
        sleep 0.1
    done
    calls_of @default >/tmp/allowed
    while read -r line; do
        read -ra words <<<"${line#\~}"
        calls_of "${words[@]}" >/tmp/named
        if [[ $line == \~* ]]; then
            grep --invert-match --line-regexp --fixed-strings --file=/tmp/named /tmp/allowed >/tmp/rest
            mv /tmp/rest /tmp/allowed
        else
            cat /tmp/named >>/tmp/allowed
        fi
    done < <(sed -n 's/^SystemCallFilter=//p' /lib/systemd/system/saltern.service)
    awk '/^ *[0-9]/ && $NF != "total" { print $NF }' /tmp/calls >/tmp/called
    (($(wc --lines </tmp/called) >= 30)) || fail "the calls of a server: $(</tmp/calls)"
    while read -r call; do
        grep --quiet --line-regexp --fixed-strings -- "$call" /tmp/allowed || [[ -v refused[$call] ]] ||
            fail "no call of $call, which the unit forbids"
    done </tmp/called
    say "$(wc --lines </tmp/called) kinds of calls"
}

# type_block NAME: commands of the handbook, with this backup. Packages are installed already. What systemd would do is done by hand.
type_block() {
    handbook_block "$1" | sed "/^apt-get install/d; s/saltern-20261123T070000Z.backup/${backup:-}/" >/tmp/block
    # shellcheck source=/dev/null
    source /tmp/block
}

systemctl() {
    case $* in
        'stop saltern') stop_server ;;
        'start saltern') start_server ;;
        *) fail "a word of systemctl that the handbook may say, not: $*" ;;
    esac
}

say "the one before installs, with what it needs, and asks nothing"
apt-get install --yes --quiet --no-install-recommends /packages/before.deb </dev/null >/tmp/apt.log 2>&1 ||
    fail "it to install: $(tail /tmp/apt.log)"
[[ $(saltern version) == 'saltern '* && $(stat --format '%U %a' /var/lib/saltern) == 'saltern 700' ]] || fail "program and folder"
# (No manual pages are installed here.)
systemd-analyze verify --man=no /lib/systemd/system/saltern.service >/tmp/unit 2>&1 || true
! grep saltern.service /tmp/unit || fail "a unit without complaints"

say "one command makes roles, settings, schema, certificate, key and an invite, and puts no password anywhere else"
pg_ctlcluster 15 main start
as_postgres psql --quiet --command 'ALTER SYSTEM SET log_statement = all' --command 'SELECT pg_reload_conf()' >/dev/null
printf '[maker]\nhost=localhost\nport=5432\nuser=maker\npassword=maker-secret\n' >/root/.pg_service.conf
as_postgres psql --quiet --command "CREATE ROLE maker LOGIN CREATEROLE CREATEDB PASSWORD 'maker-secret'"
saltern-admin setup --only-database --pg-service maker
[[ $(as_postgres psql --tuples-only --no-align --command "SELECT datdba::regrole FROM pg_database WHERE datname = 'saltern'") == \
    saltern_owner ]] || fail "a user who is no superuser to make the database"
type_block 'Debian package 1' >/tmp/setup
[[ $(</tmp/setup) =~ [[:space:]]sha256// ]] || fail "the pins: $(</tmp/setup)"
for name in database-url owner-database-url; do
    [[ $(stat --format '%U %a' "/etc/saltern/$name") == 'root 600' ]] || fail "$name for root alone"
    password=$(sed -n 's|^postgresql://[a-z_]*:\([0-9a-f]\{48\}\)@localhost:5432/saltern$|\1|p' "/etc/saltern/$name")
    [[ -n $password ]] || fail "a password in $name"
    ! grep --quiet --recursive --fixed-strings -- "$password" /var/log /tmp /etc/saltern/saltern.conf ||
        fail "the password of $name in no log"
done
[[ $(stat --format '%U %a' /var/lib/saltern/master.key) == 'saltern 600' ]] || fail "a key that the server may read"
grep --quiet '^SALTERN_SALT_PREFIX=example.notes:$' /etc/saltern/saltern.conf || fail "the prefix in the settings"

say "the same command again keeps everything, and another prefix is refused"
cat /etc/saltern/*-url /etc/saltern/saltern.conf /var/lib/saltern/tls/certificate.pem >/tmp/before
type_block 'Debian package 1' >/tmp/setup
cat /etc/saltern/*-url /etc/saltern/saltern.conf /var/lib/saltern/tls/certificate.pem | cmp - /tmp/before || fail "what was there to stay"
! saltern-admin setup --host localhost --salt-prefix another: >/tmp/setup 2>&1 || fail "another prefix to be refused"
grep --quiet 'SALTERN_SALT_PREFIX=example.notes:' /tmp/setup || fail "the refusal to name the prefix: $(</tmp/setup)"
sed --in-place 's/^SALTERN_REGISTRATION=invite/SALTERN_REGISTRATION=open/' /etc/saltern/saltern.conf
grep --quiet '^SALTERN_REGISTRATION=open' /etc/saltern/saltern.conf || fail "registration by invite until it is opened"

say "it serves: somebody registers and logs in, and doctor has nothing to mend"
start_server
[[ $(post /v1/accounts "{\"userid\":\"ada\",\"passwordKey\":\"$key\",\"kdf\":{\"iterations\":600000}}") == 201 ]] ||
    fail "to register: $(</tmp/reply)"
log_in
saltern-admin doctor >/tmp/doctor || fail "nothing to mend: $(</tmp/doctor)"
stop_server

say "relative paths are below the server's folder, and the server can read the keys of tokens"
sed --in-place 's|=/var/lib/saltern/|=|' /etc/saltern/saltern.conf
printf '%s\n' SALTERN_TOKEN_ISSUER=https://localhost SALTERN_TOKEN_AUDIENCES=billing SALTERN_SIGNING_KEY_FILE=signing-keys \
    >>/etc/saltern/saltern.conf
saltern-admin signing-key create >/dev/null
[[ $(stat --format '%U %a' /var/lib/saltern/signing-keys) == 'saltern 600' ]] || fail "keys that the server may read"
start_server
log_in

say "it is upgraded: the server goes on until somebody restarts it; settings, keys and accounts stay"
# As if systemd ran here: what is asked of it is noted.
mkdir --parents /run/systemd/system /tmp/noted
for name in systemctl deb-systemd-invoke; do
    # shellcheck disable=SC2016  # for the stand-in
    printf '#!/bin/sh\necho "$0 $*" >>/tmp/noted/calls\n' >"/tmp/noted/$name"
    chmod 0755 "/tmp/noted/$name"
done
PATH=/tmp/noted:$PATH dpkg --install /packages/saltern.deb </dev/null >/tmp/dpkg.log 2>&1 ||
    fail "it to be upgraded: $(</tmp/dpkg.log)"
rmdir /run/systemd/system
! grep --quiet 'restart\|stop' /tmp/noted/calls || fail "nothing to be restarted before the schema is: $(</tmp/noted/calls)"
grep --quiet 'saltern-admin migrate up' /tmp/dpkg.log || fail "it to say what to type: $(</tmp/dpkg.log)"
kill -0 "$server" || fail "the server to go on"
log_in
stop_server
grep --quiet '^SALTERN_SALT_PREFIX=example.notes:' /etc/saltern/saltern.conf || fail "the settings to stay"
saltern-admin migrate up >/dev/null
start_server
log_in
stop_server

say "a backup is restored in a new PostgreSQL, as the handbook says"
start_server
type_block 'Make a backup 1'
backup=$(basename -- /var/backups/saltern/*)
pg_dropcluster --stop 15 main
pg_createcluster 15 main --start >/dev/null
grep --quiet --extended-regexp '^local +all +postgres +peer$' /etc/postgresql/15/main/pg_hba.conf ||
    fail "PostgreSQL to let nobody but postgres be a superuser"
type_block 'Restore a backup 1'
log_in
stop_server

say "the server calls nothing that the unit forbids, and goes on without what may fail"
echo SALTERN_METRICS_LISTEN=127.0.0.1:9464 >>/etc/saltern/saltern.conf
start_server strace --daemonize --follow-forks --summary-only --output=/tmp/calls --inject="$(refused_calls):error=EPERM"
[[ $(post /v1/accounts "{\"userid\":\"bob\",\"passwordKey\":\"$key\",\"kdf\":{\"iterations\":600000}}") == 201 ]] ||
    fail "to register: $(</tmp/reply)"
log_in
curl --silent --fail http://127.0.0.1:9464/metrics >/tmp/metrics || fail "metrics"
kill -HUP "$server"
sleep 1
log_in
stop_server
require_allowed_calls

say "it is removed, and then forgotten; the keys stay"
dpkg --remove saltern </dev/null >/dev/null 2>&1
[[ ! -e /usr/bin/saltern && -e /etc/saltern/saltern.conf ]] || fail "the program to be gone, and its settings not"
dpkg --purge saltern </dev/null >/tmp/dpkg.log 2>&1
[[ ! -e /etc/saltern/saltern.conf && -e /var/lib/saltern/master.key ]] || fail "the settings to be gone, and the keys not"
for name in database-url owner-database-url; do
    [[ -e /etc/saltern/$name ]] || fail "$name to stay"
    grep --quiet "/etc/saltern/$name,.* is kept" /tmp/dpkg.log || fail "to be told what has a password in it: $(</tmp/dpkg.log)"
done
pg_ctlcluster 15 main stop
say "the package has lived"
