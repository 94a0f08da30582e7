#!/usr/bin/env bash
# saltern-admin setup, run again with other arguments: another host, another registration; and a PostgreSQL that a service
# names.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/postgres.sh
source "$repository/scripts/lib/postgres.sh"

place=$(mktemp --directory --tmpdir saltern-setup-XXXXXX)
# PostgreSQL's system user has to pass through it.
chmod 0711 -- "$place"

at_end=(postgres_stop)
folders_at_end=("$place")

mkdir --mode 0755 -- "$place/bin" "$place/etc"
mkdir --mode 0700 -- "$place/lib"
(umask 077 && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$place/server.key" \
    -out "$place/server.pem" -days 10 -subj /CN=db.example.net -addext subjectAltName=DNS:db.example.net 2>/dev/null)
chmod 0644 -- "$place/server.pem"
# Over the network PostgreSQL requires the password and an encrypted connection.
postgres_authentication=$'trust\nhostssl all all 127.0.0.1/32 scram-sha-256'
postgres_open "$place/postgres"
if is_root; then chown -- "$postgres_owner" "$place/server.key"; fi
port=$(free_port)
export PGPORT=$port
postgres_start "$place/postgres.log" -c listen_addresses=127.0.0.1 -c port="$port" -c ssl=on \
    -c ssl_cert_file="$place/server.pem" -c ssl_key_file="$place/server.key" -c log_min_messages=warning
psql_as_superuser --command "CREATE ROLE maker LOGIN CREATEROLE CREATEDB PASSWORD 'maker-secret'"

# The package's own, with its folders here.
sed "s|/etc/saltern|$place/etc|; s|/var/lib/saltern|$place/lib|; s|setpriv .* saltern |saltern |; s|^\[ .* -eq 0 \].*||
    s|/usr/lib/saltern/setup|$place/bin/setup|" "$repository/scripts/package.d/saltern-admin" >"$place/bin/saltern-admin"
sed "s|/etc/saltern|$place/etc|; s|/var/lib/saltern|$place/lib|; s|/usr/share/saltern|$repository/scripts/package.d|
    s|/usr/sbin/saltern-admin|saltern-admin|; s|^ *\[ .* -eq 0 \].*||; s|/run/systemd/system|$place/no-systemd|
    s|setpriv --reuid saltern .*init-groups|env|
    s|setpriv .*init-groups|env PGHOST=$postgres_sockets PGUSER=postgres|" \
    "$repository/scripts/package.d/setup" >"$place/bin/setup"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$executable" >"$place/bin/saltern"
chmod 0755 -- "$place"/bin/*

# new_machine: nothing is set up.
new_machine() {
    rm -rf -- "${place:?}/etc" "${place:?}/lib"
    mkdir --mode 0755 -- "$place/etc"
    mkdir --mode 0700 -- "$place/lib"
    sed "s|/var/lib/saltern|$place/lib|; s|^SALTERN_LISTEN=.*|SALTERN_LISTEN=127.0.0.1:$(free_port)|" \
        "$repository/scripts/package.d/saltern.conf" >"$place/etc/saltern.conf"
}

# setup STATUS ARGUMENT…: what it ends with; its output is in $said.
setup() {
    local wanted=$1 result=0
    shift
    said=$(env --ignore-environment PATH="$place/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME="$place" PGPORT="$port" \
        PGSERVICEFILE="$place/services" saltern-admin setup --salt-prefix org.example.notes: "$@" 2>&1 </dev/null) || result=$?
    ((result == wanted)) || fail "setup $* to end with $wanted, not $result: $said"
}
admin() { env --ignore-environment PATH="$place/bin:/usr/sbin:/usr/bin:/sbin:/bin" saltern-admin "$@"; }
setting() { sed -n "s/^$1=//p" "$place/etc/saltern.conf"; }
url_end() { sed 's|.*@||' "$place/etc/$1"; }

new_machine
# The URLs name the machine itself, whose PostgreSQL is another one here.
printf 'postgresql://saltern_owner:0a@%s/saltern\n' "${postgres_sockets//\//%2F}:$port" >"$place/etc/owner-database-url"
printf 'postgresql://saltern_app:0b@%s/saltern\n' "${postgres_sockets//\//%2F}:$port" >"$place/etc/database-url"

scenario "the registration is by invite unless --registration names another, also when setup is typed again"
setup 0 --host a.example.org
[[ $said == *'ready: clients connect to a.example.org'* ]] || fail "it to be ready: $said"
[[ $(setting SALTERN_REGISTRATION) == invite ]] || fail "registration by invite: $(<"$place/etc/saltern.conf")"
before=$(sha256sum "$place"/etc/* "$place"/lib/tls/*)
setup 0 --host a.example.org
[[ $(sha256sum "$place"/etc/* "$place"/lib/tls/*) == "$before" ]] || fail "everything to be kept"
setup 0 --host a.example.org --registration open
[[ $(setting SALTERN_REGISTRATION) == open && $said == *'registration: open (before: invite)'* ]] || fail "it to be open: $said"
setup 0 --host a.example.org
[[ $(setting SALTERN_REGISTRATION) == open ]] || fail "it to stay open"
sed --in-place '/^SALTERN_REGISTRATION=/d' "$place/etc/saltern.conf"
setup 0 --host a.example.org --registration closed
[[ $(setting SALTERN_REGISTRATION) == closed ]] || fail "a setting that is not there to be added"
setup 64 --host a.example.org --registration sometimes

scenario "quotes around settings and relative paths are read as by a shell and in the server's folder"
sed --in-place "s|^SALTERN_SALT_PREFIX=.*|SALTERN_SALT_PREFIX='org.example.notes:'|
    s|^SALTERN_REGISTRATION=.*|SALTERN_REGISTRATION=\"invite\"|; s|=$place/lib/|=|" "$place/etc/saltern.conf"
before=$(sha256sum "$place"/etc/* "$place"/lib/master.key "$place"/lib/tls/*)
setup 0 --host a.example.org
[[ $said == *sli_* ]] || fail "an invite: $said"
[[ $(sha256sum "$place"/etc/* "$place"/lib/master.key "$place"/lib/tls/*) == "$before" ]] || fail "everything to be kept"
setup 1 --salt-prefix another: --host a.example.org
[[ $said == *'SALTERN_SALT_PREFIX=org.example.notes:,'* ]] || fail "the prefix: $said"
setup 0 --host a.example.org --registration closed
[[ $(setting SALTERN_REGISTRATION) == closed ]] || fail "the quoted setting to be replaced"

scenario "help of an installed command changes nothing, and keys of tokens are in the server's folder"
for option in -h --help; do
    said=$(admin certificate install "$option")
    [[ $said == *--chain* && $said != *'next start'* ]] || fail "only the help: $said"
done
printf 'SALTERN_SIGNING_KEY_FILE=signing-keys\n' >>"$place/etc/saltern.conf"
(cd / && admin signing-key create) >"$work/created" || fail "the keys: $(<"$work/created")"
[[ $(stat --format %a "$place/lib/signing-keys") == 600 ]] || fail "a file in the server's folder"
sed --in-place '/^SALTERN_SIGNING_KEY_FILE=/d' "$place/etc/saltern.conf"

scenario "another host is refused until the certificate is for it, and the words that make one are printed"
before=$(sha256sum "$place"/lib/tls/*)
setup 1 --host b.example.org
[[ $said == *'the certificate is not for b.example.org, but for a.example.org'* && $said != *ready* ]] || fail "the name: $said"
renewal=$(grep --only-matching 'certificate renew --host a.example.org --host b.example.org' <<<"$said") || fail "the words: $said"
[[ $(sha256sum "$place"/lib/tls/*) == "$before" ]] || fail "nothing to change"
pins=$(admin certificate pins)
# shellcheck disable=SC2086  # words
[[ $(admin $renewal) == "$pins" ]] || fail "the pins to stay"
for host in a b; do setup 0 --host "$host.example.org"; done

scenario "the URLs have the sslmode and the sslrootcert of a service, and one over a network without them is refused"
# service LINE…: a service on another machine, which is this one.
service() {
    printf '[other]\nsslmode=disable\n\n[maker]\nhost=db.example.net\nhostaddr=127.0.0.1\nport=%s\nuser=maker\npassword=maker-secret\n' \
        "$port" >"$place/services"
    printf '%s\n' "$@" '' '[another]' 'sslmode=disable' >>"$place/services"
}
psql_as_superuser --command 'DROP DATABASE saltern' --command 'DROP ROLE saltern_owner, saltern_app, saltern_server'
new_machine
service
setup 1 --host a.example.org --pg-service maker
[[ $said == *'db.example.net and has no sslmode'* ]] || fail "the sslmode to be asked for: $said"
service "sslmode=verify-full" "sslrootcert=$place/none.pem"
setup 1 --host a.example.org --pg-service maker
service "sslmode=require"
setup 0 --only-database --pg-service maker
for name in database-url owner-database-url; do
    [[ $(url_end "$name") == "db.example.net:$port/saltern?sslmode=require" ]] || fail "the URL, not $(url_end "$name")"
    grep --quiet '^postgresql://saltern_[a-z]*:[0-9a-f]\{48\}@' "$place/etc/$name" || fail "a password in $name"
done
rm -- "$place"/etc/*-url
service "sslmode=verify-full" "sslrootcert=$place/server.pem"
setup 0 --only-database --pg-service maker
parameters="?sslmode=verify-full&sslrootcert=$place/server.pem"
for name in database-url owner-database-url; do
    [[ $(url_end "$name") == "db.example.net:$port/saltern$parameters" ]] || fail "the URL, not $(url_end "$name")"
done
PGHOSTADDR=127.0.0.1 psql --no-psqlrc --quiet --command 'SELECT 1' "$(<"$place/etc/database-url")" >"$work/psql" ||
    fail "libpq to take the URL"

scenario "URLs from before are kept, and what they lack is printed"
sed --in-place 's|?.*||' "$place/etc/database-url"
before=$(sha256sum "$place"/etc/*)
setup 0 --only-database --pg-service maker
[[ $said == *"database-url is kept, and has no sslmode: append $parameters"* && $said != *owner-database-url* ]] ||
    fail "the parameters: $said"
[[ $(sha256sum "$place"/etc/*) == "$before" ]] || fail "the files to be as they were"
