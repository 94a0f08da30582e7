#!/usr/bin/env bash
# Types every block of commands of docs/admins.md, in its order, on a throw-away PostgreSQL; what cannot be typed here is
# listed with the reason.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/postgres.sh
source "$repository/scripts/lib/postgres.sh"

folder=$(mktemp --directory /tmp/saltern-handbook-XXXXXX)
# PostgreSQL's system user has to pass through it; nobody but that user and root reaches the sockets.
chmod 0711 -- "$folder"
postgres_authentication=trust
PATH=$(dirname -- "$executable"):$PATH
# The server refuses settings that it does not know.
for name in "${!SALTERN_TEST_@}"; do
    export -n "${name?}"
done
backup='' types_settings=''

# shellcheck disable=SC2317  # the trap calls it
end() {
    local result=$?
    stop_own_server || result=1
    postgres_stop
    rm -rf -- "$folder"
    (exit "$result")
    finish
}
trap end EXIT

# Blocks by section and number that are typed somewhere else, or nowhere.
declare -A elsewhere=(
    ['With Docker Compose 1']='needs Docker; scripts/test has docker-compose check the file'
    ['A standby with Docker Compose 1']='needs Docker; scripts/test has docker-compose check the files'
    ['A standby with Docker Compose 2']='needs Docker; standby.sh does it without'
    ['The Debian package 1']='scripts/package --test types it in a fresh Debian'
    ['From source 1']='changes the machine; scripts/package builds so, and installs in a fresh Debian'
    ['To any moment 1']='changes the machine; scripts/pitr installs it'
    ['To any moment 2']='scripts/pitr types it'
    ['To any moment 3']='scripts/pitr types it'
    ['On a cluster 1']='scripts/citus types it on a cluster'
)

# What a machine has that there is not here.
systemctl() {
    case $* in
        'reload saltern')
            local reloads
            reloads=$(grep --count _reloaded "$own_home/run.log") || true
            kill -HUP "$(own_server_process)"
            # The certificate and the master key.
            wait_until 10 has_reloaded $((reloads + 2)) || fail "the server to reload: $(tail -n 3 "$own_home/run.log")"
            ;;
        'restart saltern') stop_own_server && serve ;;
        'stop saltern')
            stop_own_server
            # The machine that a backup is restored on is a new one.
            [[ -z $backup ]] || psql_as_superuser --command 'DROP DATABASE saltern'
            ;;
        'start saltern') serve ;;
        *) fail "a word of systemctl that the handbook may say, not: $*" ;;
    esac
}

has_reloaded() { (($(grep --count _reloaded "$own_home/run.log") >= $1)); }

# sudo -u USER COMMAND…: a server is given some time to be ready, and ended.
sudo() {
    shift 2
    [[ ${*: -1} == serve ]] || { "$@" && return; }
    "$@" 2>"$work/served" &
    local pid=$!
    wait_until 60 grep --quiet server_started "$work/served" || fail "the server to start: $(<"$work/served")"
    end_process "$pid" TERM 40
}

# With the server's settings, unless the block has them.
saltern() {
    local result=0
    (
        [[ -n ${types_settings:-} ]] || source_environment
        unset "${!SALTERN_TEST_@}"
        exec "$executable" "$@"
    ) </dev/null >>"$work/said" 2>&1 || result=$?
    ((result == 0)) || fail "saltern $* to succeed: $(tail -n 5 "$work/said")"
}

source_environment() {
    # shellcheck source=/dev/null
    source "$own_home/run.env"
}

curl() {
    command curl --silent --show-error --noproxy '*' --max-time 30 --cacert "$certificate" "$@"
}

serve() {
    start_own_server "SALTERN_DATABASE_URL=$(postgres_url saltern_app saltern)" \
        "SALTERN_OWNER_DATABASE_URL=$(postgres_url saltern_owner saltern)" "SALTERN_SALT_PREFIX=org.example.notes:" \
        "SALTERN_MASTER_KEY_FILE=$folder/lib/master.key" "SALTERN_TLS_DIRECTORY=$folder/lib/tls" \
        SALTERN_APPLE_APP_IDS=A1B2C3D4E5.org.example.notes
    certificate=$folder/lib/tls/certificate.pem
}

# here: the handbook's words, made those of this machine.
here() {
    sed --regexp-extended "
        s|postgresql://postgres@%2Frun%2Fpostgresql/postgres|$(postgres_url postgres postgres)|
        s|postgresql://(saltern_[a-z]*):…@localhost/saltern|postgresql://\1@${postgres_sockets//\//%2F}/saltern|
        s|/var/backups|$folder/backups|g; s|saltern-20261123T070000Z.backup|${backup:-}|
        s|/var/lib/saltern|$folder/lib|g; s|'\[::\]:8443'|127.0.0.1:$(free_port)|; s|api.example.org|localhost|
        s|https://HOST/|${SALTERN_TEST_URL:-}/|; s|\.saltern/run.env|${own_home:-}/run.env|
        s|saltern account delete ada@example.org|& --yes|"
}

# before NAME: what the text around a block says that there is.
before() {
    types_settings=
    case $1 in
        'Try it 1') start_own_server ;;
        'From source 2')
            types_settings=yes
            # shellcheck disable=SC2016  # the backticks are Markdown's
            sed -n '/^### From source/,/^### /{/^```sql/,/^```$/{/^```/d;p}}' "$repository/docs/admins.md" | psql_as_superuser
            install --directory --mode 0700 "$folder/lib" "$folder/backups/saltern"
            ;;
        'The master key 1') export SALTERN_MASTER_KEY_FILE=$folder/another.key types_settings=yes ;;
        'When it is lost 1') query "INSERT INTO saltern.second_factors (account_id, sealed_secret, created_at)
            SELECT account_id, 'x', now() FROM saltern.logins WHERE userid = 'ada@example.org'" ;;
        'Backups 2') backup=$(basename -- "$folder"/backups/saltern/*.backup) ;;
    esac
}

# after NAME
after() {
    local name
    case $1 in
        'Try it 1')
            remove_own_server
            own_home=
            ;;
        'From source 2')
            grep --quiet server_started "$work/served" || fail "it to have served"
            serve
            person
            ;;
        'Looking after accounts 1')
            [[ $(query "SELECT count(*) FROM saltern.logins WHERE userid = 'ada@example.org'") == 0 ]] || fail "no Ada"
            person
            ;;
        'Backups 1') [[ -n $(ls "$folder/backups/saltern") ]] || fail "a backup" ;;
        'Backups 2')
            backup=
            [[ $(query 'SELECT userid FROM saltern.logins') == ada@example.org ]] || fail "Ada to be there again"
            ;;
        'Shares 2')
            grep --quiet --ignore-case '^content-type: application/json' "$work/said" || fail "JSON: $(<"$work/said")"
            ;;
    esac
    for name in "${!SALTERN_@}"; do
        [[ $name == SALTERN_TEST_* ]] || unset "$name"
    done
}

# person: Ada, as an app has registered her.
person() {
    token=
    request POST /v1/accounts "{\"userid\":\"ada@example.org\",\"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":600000}}"
    expect_status 201
}

# Every block is a file; the list has section and number.
awk -v folder="$work" '
    /^#/ && !inside { section = $0; sub(/^#+ /, "", section); count = 0 }
    /^```/ { if (inside) { inside = 0; close(file) } else { inside = 1; types = ($0 == "```sh" || $0 == "```bash")
            if (types) { file = folder "/block-" ++number; print section " " ++count > (folder "/blocks") } }; next }
    inside && types { print > file }' "$repository/docs/admins.md"

postgres_open "$folder/postgres"
postgres_start "$folder/postgres.log"

while read -r name <&3; do
    number=$((${number:-0} + 1))
    [[ -z ${elsewhere[$name]:-} ]] || continue
    scenario "$name"
    before "$name"
    here <"$work/block-$number" >"$work/typed"
    : >"$work/said"
    # shellcheck source=/dev/null
    source "$work/typed" >>"$work/said"
    after "$name"
done 3<"$work/blocks"
((number >= 25)) || fail "to find the handbook's blocks, not $number"

scenario "nothing is listed as typed elsewhere that is not there"
for name in "${!elsewhere[@]}"; do
    grep --quiet --line-regexp --fixed-strings -- "$name" "$work/blocks" || fail "a block $name in docs/admins.md"
    printf '   %s: %s\n' "$name" "${elsewhere[$name]}"
done
