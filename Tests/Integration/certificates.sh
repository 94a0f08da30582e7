#!/usr/bin/env bash
# Certificates of an authority: their installation, certbot's hook, the reload of the service, and the exit statuses for jobs.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"

authority=$work/authority
tls=
mkdir --mode 0755 -- "$authority" "$work/bin" "$work/etc"

# issue NAME DAYS [KEY-OPTION…]: the certificate of an authority and its key, as certbot leaves them, in $work/live/NAME.
issue() {
    local folder=$work/live/$1 days=$2
    shift 2
    (($# > 0)) || set -- -algorithm EC -pkeyopt ec_paramgen_curve:P-256
    mkdir --parents -- "$folder"
    (umask 077 && openssl genpkey "$@" -out "$folder/privkey.pem" 2>/dev/null)
    openssl req -new -key "$folder/privkey.pem" -subj /CN=localhost -out "$work/request.pem"
    openssl x509 -req -in "$work/request.pem" -CA "$authority/ca.pem" -CAkey "$authority/ca.key" -days "$days" \
        -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n') \
        -out "$folder/cert.pem" 2>/dev/null
    cat -- "$folder/cert.pem" "$authority/ca.pem" >"$folder/fullchain.pem"
}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$authority/ca.key" -out "$authority/ca.pem" \
    -days 100 -subj /CN=Authority 2>/dev/null
issue one 90
issue two 90
issue weak 90 -algorithm RSA -pkeyopt rsa_keygen_bits:1024

metrics=127.0.0.1:$(free_port)
start_own_server "SALTERN_METRICS_LISTEN=$metrics"
tls=$own_home/tls

certificate_status() { run_command "$1" certificate "${@:2}"; }

# served: the certificate that a new connection sees.
served() {
    openssl s_client -connect "127.0.0.1:$own_port" -servername localhost </dev/null 2>/dev/null | openssl x509 -outform DER |
        sha256sum
}
is_served() { [[ $(served) == "$(openssl x509 -in "$1" -outform DER | sha256sum)" ]]; }

# reload_metric FILE VALUE
reload_metric() {
    # Not by a pipe, which curl would report as broken when grep ends first.
    grep --quiet --line-regexp --fixed-strings "saltern_reload_failed{file=\"$1\"} $2" \
        <<<"$(curl --silent --noproxy '*' "http://$metrics/metrics")"
}

scenario "a pair that the server would not serve is not installed, and nothing changes"
before=$(sha256sum "$tls"/*)
cat -- "$authority/ca.pem" "$work/live/one/cert.pem" >"$work/reversed.pem"
certificate_status 1 install --chain "$work/reversed.pem" --key "$work/live/one/privkey.pem"
[[ $said == *'wrong order'*'certificate 2'* ]] || fail "the order to be named: $said"
certificate_status 1 install --chain "$work/live/two/fullchain.pem" --key "$work/live/one/privkey.pem"
[[ $said == *'does not match'* ]] || fail "the key to be named: $said"
certificate_status 1 install --chain "$work/live/weak/fullchain.pem" --key "$work/live/weak/privkey.pem"
[[ $said == *'too small'* ]] || fail "the key to be too small: $said"
cp -- "$work/live/one/privkey.pem" "$work/open.pem" && chmod 0644 "$work/open.pem"
certificate_status 1 install --chain "$work/live/one/fullchain.pem" --key "$work/open.pem"
[[ $said == *'others can read'* ]] || fail "a key that others can read to be refused: $said"
certificate_status 1 install --chain "$work/missing.pem" --key "$work/live/one/privkey.pem"
certificate_status 1 install --chain "$work/live/one/fullchain.pem" --key "$work/live/one/fullchain.pem"
certificate_status 64 install --chain "$work/live/one/fullchain.pem"
[[ $(sha256sum "$tls"/*) == "$before" ]] || fail "the files to be as they were"

scenario "what is installed is served after a reload"
# Nothing but the certificates is copied.
cat -- "$work/live/one/fullchain.pem" "$work/live/one/privkey.pem" >"$work/combined.pem"
certificate_status 0 install --chain "$work/combined.pem" --key "$work/live/one/privkey.pem"
if grep --quiet 'PRIVATE KEY' "$tls/certificate.pem"; then fail "no key in the chain's file"; fi
[[ $(stat --format %a "$tls/certificate.pem" "$tls/key.pem" | tr '\n' ' ') == '644 600 ' ]] || fail "the right modes"
[[ $(find "$tls" -type f | wc --lines) == 3 ]] || fail "no other file: $(ls "$tls")"
saltern reload "$(own_server_process)" || fail "the reload to succeed"
wait_until 180 is_served "$work/live/one/cert.pem" || fail "the new certificate to be served"

scenario "a key that clients do not pin is installed with a warning, and refused where pins are kept"
before=$(sha256sum "$tls"/*)
pin=$(saltern certificate pins | sed -n 's/^active  //p')
certificate_status 1 install --chain "$work/live/two/fullchain.pem" --key "$work/live/two/privkey.pem" --keep-pins
[[ $said == *'neither the served key nor the backup key'*'nothing was changed'* ]] || fail "the refusal: $said"
[[ $(sha256sum "$tls"/*) == "$before" ]] || fail "the files to be as they were"
certificate_status 0 install --chain "$work/live/two/fullchain.pem" --key "$work/live/two/privkey.pem"
[[ $said == *'warning: this key is neither'*"$pin"*'cannot connect'* ]] || fail "a warning that names the pin: $said"
certificate_status 0 install --chain "$work/live/two/fullchain.pem" --key "$work/live/two/privkey.pem" --keep-pins
[[ $said != *'this key'* ]] || fail "no warning of the same key: $said"
certificate_status 0 install --chain "$work/live/one/fullchain.pem" --key "$work/live/one/privkey.pem"
[[ $(sha256sum "$tls"/*) == "$before" ]] || fail "the files to be as they were"

scenario "a reload that cannot use a file fails, and metrics tell until one succeeds"
reload_metric certificate 0 || fail "no failed reload before"
cp -- "$tls/key.pem" "$work/key.pem"
cp -- "$work/live/two/privkey.pem" "$tls/key.pem"
if said=$(saltern reload "$(own_server_process)" 2>&1); then fail "the reload to fail"; fi
[[ $said == *'does not match'* ]] || fail "the reload to say why: $said"
wait_until 180 reload_metric certificate 1 || fail "the metric of a failed reload"
reload_metric master_key 0 || fail "the master key to be reloaded"
is_served "$work/live/one/cert.pem" || fail "the server to go on as before"
cp -- "$work/key.pem" "$tls/key.pem"
saltern reload "$(own_server_process)" || fail "the reload to succeed"
wait_until 180 reload_metric certificate 0 || fail "the metric to end"
if saltern reload 0 2>/dev/null; then fail "no process 0"; fi

scenario "certbot's hook installs what it has renewed, and reloads the service"
printf '%s\n' "SALTERN_TLS_DIRECTORY=$tls" "SALTERN_SALT_PREFIX=$(with_settings printenv SALTERN_SALT_PREFIX)" \
    "SALTERN_MASTER_KEY_FILE=$(with_settings printenv SALTERN_MASTER_KEY_FILE)" >"$work/etc/saltern.conf"
sed "s|/etc/saltern|$work/etc|; s|^\[ .* -eq 0 \].*||; s|-d /run/systemd/system|-d /|" \
    "$repository/scripts/package.d/saltern-admin" >"$work/bin/saltern-admin"
cat >"$work/bin/systemctl" <<SYSTEMCTL
#!/bin/sh
[ "\$*" != 'reload saltern' ] || exec "$executable" reload "$(own_server_process)"
SYSTEMCTL
printf '#!/bin/sh\nexec "%s" "$@"\n' "$executable" >"$work/bin/saltern"
chmod 0755 "$work"/bin/*
# as_admin COMMAND…: with these in place of the machine's.
as_admin() { env --ignore-environment PATH="$work/bin:/usr/sbin:/usr/bin:/sbin:/bin" "$@"; }
sed "s|^PATH=/|PATH=$work/bin:/|" "$repository/scripts/package.d/certbot-deploy" >"$work/hook" && chmod 0755 "$work/hook"
as_admin RENEWED_LINEAGE="$work/live/two" "$work/hook" >"$work/said" 2>&1 || fail "the hook to succeed: $(<"$work/said")"
wait_until 180 is_served "$work/live/two/cert.pem" || fail "the renewed certificate to be served: $(<"$work/said")"
cat >"$work/bin/certbot" <<CERTBOT
#!/bin/sh
while [ \$# -gt 0 ]; do
    [ "\$1" != --deploy-hook ] || [ "\$2" != /usr/lib/saltern/certbot-deploy ] || hook=$work/hook
    shift
done
RENEWED_LINEAGE=$work/live/one exec "\$hook"
CERTBOT
chmod 0755 "$work/bin/certbot"
handbook_block 'Certificate of a public authority 2' >"$work/typing"
as_admin sh -e "$work/typing" >"$work/said" 2>&1 || fail "the handbook's words for certbot: $(<"$work/said")"
wait_until 180 is_served "$work/live/one/cert.pem" || fail "the certificate to be served: $(<"$work/said")"
as_admin RENEWED_LINEAGE="$work/live/two" "$work/hook" >"$work/said" 2>&1 || fail "the hook to succeed: $(<"$work/said")"
wait_until 180 is_served "$work/live/two/cert.pem" || fail "the renewed certificate to be served: $(<"$work/said")"
if as_admin "$work/hook" 2>/dev/null; then fail "the hook to want certbot's variable"; fi
if as_admin RENEWED_LINEAGE="$work/live/weak" "$work/hook" >"$work/said" 2>&1; then fail "the hook to fail"; fi
wait_until 180 is_served "$work/live/two/cert.pem" || fail "the certificate from before to be served"

scenario "the handbook's own words, with a new folder whose owner the files get"
mkdir --mode 0755 -- "$work/lib"
if is_root; then chown 4711:4712 -- "$work/lib"; fi
sed --in-place "s|^SALTERN_TLS_DIRECTORY=.*|SALTERN_TLS_DIRECTORY=$work/lib/tls|" "$work/etc/saltern.conf"
handbook_block 'Certificate of a public authority 1' >"$work/typing"
(cd -- "$work/live/one" && as_admin sh -e "$work/typing") >"$work/said" 2>&1 ||
    fail "the handbook's words: $(<"$work/said")"
[[ $(stat --format %a "$work/lib/tls" "$work/lib/tls/key.pem" | tr '\n' ' ') == '700 600 ' ]] || fail "the right modes"
if is_root; then
    [[ $(stat --format %u:%g "$work/lib/tls" "$work/lib/tls"/*.pem | sort --unique) == 4711:4712 ]] ||
        fail "the owner of the folder around it: $(ls -ln "$work/lib/tls")"
fi

scenario "check has a status for jobs: 0, 1 when the certificate ends soon, 2 when something has to be mended"
# put NAME [CHAIN]: as the files of a folder of its own.
put() {
    rm -rf -- "$work/put"
    mkdir --mode 0700 -- "$work/put"
    cp -- "$work/live/$1/${2:-cert.pem}" "$work/put/certificate.pem"
    cp -- "$work/live/$1/privkey.pem" "$work/put/key.pem"
}
self_signed() {
    mkdir --parents -- "$work/live/$1"
    (umask 077 && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/live/$1/privkey.pem" \
        -out "$work/live/$1/cert.pem" -days "$2" -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -addext basicConstraints=critical,CA:FALSE 2>/dev/null)
}
self_signed month 29
self_signed days 5
put month
certificate_status 0 check --directory "$work/put"
certificate_status 1 check --directory "$work/put" --days 30
[[ $said == *'expires in 2'[89]' days'* ]] || fail "the days: $said"
put days
certificate_status 1 check --directory "$work/put"
certificate_status 0 check --directory "$work/put" --days 3
certificate_status 64 check --directory "$work/put" --days 0
certificate_status 1 check --directory "$work/put" --json
certificate_status 2 check --directory "$work/nothing"
put weak fullchain.pem
certificate_status 2 check --directory "$work/put"
[[ $said == *'does not start'*'too small'* ]] || fail "the server's own judgement: $said"
put month
cat -- "$authority/ca.pem" "$work/live/month/cert.pem" >"$work/put/certificate.pem"
certificate_status 2 check --directory "$work/put"
[[ $said == *'wrong order'*'certificate 2'* && $said != *'another certificate'* && $said != *'names no host'* ]] ||
    fail "the order alone to be named: $said"
put month
cat -- "$work/put/key.pem" >>"$work/put/certificate.pem"
chmod 0644 "$work/put/certificate.pem"
certificate_status 2 check --directory "$work/put"
put month
cp -- "$work/put/key.pem" "$work/put/key.pem.bak"
certificate_status 0 check --directory "$work/put"
chmod 0644 "$work/put/key.pem.bak"
certificate_status 2 check --directory "$work/put"
[[ $said == *'key.pem.bak has a private key in it'* ]] || fail "the copy to be named: $said"

scenario "check finds a name that the certificate is not for, and a renewal adds it to the same key"
put month
certificate_status 0 check --directory "$work/put" --host localhost
certificate_status 2 check --directory "$work/put" --host localhost --host other.example.org
renewal=$(grep --only-matching 'certificate renew --host localhost --host other.example.org' <<<"$said") || fail "the words: $said"
pins=$(saltern certificate pins --directory "$work/put")
# shellcheck disable=SC2086  # words
[[ $(saltern $renewal --directory "$work/put") == "$pins" ]] || fail "the pins to stay"
certificate_status 0 check --directory "$work/put" --host localhost --host other.example.org
certificate_status 2 check --directory "$work/put" --host 'not a name'
put two fullchain.pem
certificate_status 2 check --directory "$work/put" --host other.example.org
[[ $said == *'ask the authority'* ]] || fail "the way with an authority: $said"
