# shellcheck shell=bash
# For the scripts that run in a fresh Debian: how they report, and how they call the server and type the handbook.

say() { printf -- '-- %s\n' "$*"; }
fail() { printf 'FAILED  expected %s\n' "$*" >&2 && exit 1; }
as_postgres() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }

# sudo is in no minimal Debian.
sudo() {
    [[ $1 == -u && $2 == postgres ]] || fail "sudo to be for postgres, not: $*"
    as_postgres "${@:3}"
}

# wait_for WHAT COMMAND…: tries the command for ten minutes.
wait_for() {
    local what=$1
    shift
    for _ in {1..6000}; do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    fail "$what within ten minutes"
}

# The port of the server.
port=8443

# post PATH BODY: the status.
post() {
    curl --silent --output /tmp/reply --write-out '%{http_code}' --cacert /var/lib/saltern/tls/certificate.pem \
        --header 'Content-Type: application/json' --data "$2" "https://localhost:$port$1"
}

# handbook_block NAME: the lines of a block of the handbook, with this host.
handbook_block() {
    local number
    number=$(grep --line-number --line-regexp --fixed-strings -- "$1" /packages/blocks) || fail "a block $1"
    sed 's/api.example.org/localhost/; s/org.example.notes:/example.notes:/' "/packages/block-${number%%:*}"
}

key=$(openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt pass:secret -kdfopt salt:example.notes:ada -kdfopt iter:600000 \
    -binary PBKDF2 | base64)
log_in() {
    [[ $(post /v1/sessions "{\"userid\":\"ada\",\"passwordKey\":\"$key\"}") == 201 ]] || fail "to log in: $(</tmp/reply)"
}
