#!/usr/bin/env bash
# Runs every command of docs/admin, those of the blocks in their order and then those of the text, on a temporary PostgreSQL
# with separate servers (start_own_server); checks its other blocks; and names the tests that run the rest. Commands that no
# test runs or checks are failures.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/postgres.sh
source "$repository/scripts/lib/postgres.sh"
# shellcheck source=scripts/lib/packages.sh
source "$repository/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/toolchain.sh
source "$repository/scripts/lib/toolchain.sh"
# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"
# shellcheck source=Tests/Integration/handbook/machine.sh
source "$repository/Tests/Integration/handbook/machine.sh"
# shellcheck source=Tests/Integration/handbook/blocks.sh
source "$repository/Tests/Integration/handbook/blocks.sh"

folder=$(mktemp --directory --tmpdir saltern-handbook-XXXXXX)
# PostgreSQL's system user must be able to enter it. Only that user and root can reach the sockets.
chmod 0711 -- "$folder"
postgres_authentication=trust
PATH=$(dirname -- "$executable"):$PATH
# The server refuses settings that it does not know.
for name in "${!SALTERN_TEST_@}"; do
    export -n "${name?}"
done

at_end=(stop_own_server postgres_stop)
folders_at_end=("$folder")

# Blocks that are typed, or tried, by another script.
declare -A elsewhere=(
    ['Debian package 1']=scripts/package.d/life.sh
    ['Certificate of a public authority 1']=Tests/Integration/certificates.sh
    ['Certificate of a public authority 2']=Tests/Integration/certificates.sh
    ['Ports below 1024 ini 1']=scripts/package.d/booted.sh
    ['Handover without a balancer 2']=scripts/package.d/booted.sh
    ['Daily backup ini 1']=scripts/package.d/booted.sh
    ['Restore on a new machine 1']=scripts/package.d/booted.sh
    ['Upgrade PostgreSQL 1']=scripts/package.d/booted.sh
    ['nginx nginx 1']=Tests/Integration/proxies.sh
    ['PROXY protocol haproxy 1']=Tests/Integration/proxies.sh
    ['HAProxy haproxy 1']=Tests/Integration/proxies.sh
    ['Renew the certificate behind a proxy 1']=Tests/Integration/proxies.sh
    ['Share ids in proxy logs nginx 1']=Tests/Integration/proxies.sh
    ['Metrics yaml 1']=Tests/Integration/metrics.sh
    ['Point-in-time recovery 1']=scripts/pitr
    ['Point-in-time recovery ini 1']=scripts/lib/handbook.sh
    ['Point-in-time recovery text 1']=scripts/pitr
    ['Point-in-time recovery 2']=scripts/pitr
    ['Point-in-time recovery 3']=scripts/pitr
    ['Set up a cluster sql 1']=scripts/lib/cluster.sh
    ['Set up a cluster 1']=scripts/citus
    ['Backups of a cluster sql 1']=scripts/citus
    ['Restore a cluster 1']=scripts/citus
)

handbook_blocks "$work"
install --directory --mode 0755 "$folder/bin" "$folder/etc" "$folder/place/scripts"
cd -- "$folder/place"
postgres_open "$folder/postgres"
postgres_start "$folder/postgres.log"
: >"$work/typed"

number=0
while read -r name <&3; do
    number=$((number + 1))
    [[ -z ${elsewhere[$name]:-} ]] || continue
    scenario "$name"
    before "$name"
    : >"$work/said"
    if [[ -z $(sed -n "${number}p" "$work/kinds") ]]; then
        type_in <"$work/block-$number"
    else
        try "$name" <"$work/block-$number"
    fi
    after "$name"
done 3<"$work/blocks"
((number >= 50)) || fail "to find the handbook's blocks, not $number"

scenario "what the text says without a block"
types_settings=
: >"$work/said"
type_in <"$repository/Tests/Integration/handbook/text.sh"

scenario "every command of the text was typed"
# What stands for something else, beside words with dots.
placeholders=(COMMAND USERID PLAN NAME N ID ACCOUNT AUDIENCE FILE 'FILE|DIR' SEQUENCE:HASH)

# is_placeholder WORD: of a command.
is_placeholder() {
    local each
    if [[ $1 == *…* ]]; then return 0; fi
    for each in "${placeholders[@]}"; do
        if [[ ${1//[][]/} == "$each" ]]; then return 0; fi
    done
    return 1
}

# is_typed WORDS: on one line, but for placeholders.
is_typed() {
    local words pattern='' word
    read -ra words <<<"$1"
    for word in "${words[@]}"; do
        is_placeholder "$word" || pattern+="(?=.*(?<![\\w-])\\Q${word//[][]/}\\E(?![\\w-]))"
    done
    [[ -n $pattern ]] || fail "a word that somebody could type in: $1"
    grep --quiet --perl-regexp -- "^$pattern" "$work/typed"
}

# lines_of FILE…: without remarks.
lines_of() { sed '/^ *#/d' -- "$@"; }

# is_said_elsewhere NAME: of the table `spoken`; nothing is to be said of what has no words there.
is_said_elsewhere() {
    local mention=${spoken[$1]}
    [[ -z $mention ]] || grep --quiet --fixed-strings -- "${mention#* }" <(lines_of "$repository/${mention%% *}")
}

# What is no command, and nothing that the server knows; else the script that has it, and its words.
declare -A spoken=(
    ['CONNECTION LIMIT']='Tests/Integration/backup.sh CONNECTION LIMIT 6'
    ['package=SHA-256 of the signing certificate']=''
    ['--reuse-key']='' ['keytool -list -v']='' ['apt upgrade']='' ['ulimit -n']=''
    ['ca-certificates libevent-core-2.1-7 libpq5 libssl3 libcurl4 libfido2-1 libcbor0.8 libstdc++6']=''
    ['log_error_verbosity = terse']='scripts/lib/postgres.sh log_error_verbosity=terse'
    ['max_prepared_statements = 500']='Tests/Integration/pooler.sh max_prepared_statements = 500'
    ['http-request set-log-level silent if { path_beg /s/ /j/ /v1/shares /v1/invitations }']='Tests/Integration/proxies.sh http-request set-log-level'
    ["shared_preload_libraries = 'citus'"]='scripts/lib/cluster.sh cluster_tools'
    ["citus.node_connection_timeout = '3s'"]="scripts/lib/cluster.sh citus.node_connection_timeout = '"
    ['CREATE DATABASE saltern']="scripts/lib/cluster.sh CREATE DATABASE \$1"
    ['CREATE EXTENSION citus']='scripts/lib/cluster.sh CREATE EXTENSION citus'
    ['saltern-client login --restore-keyring']='Tests/Integration/client-mishaps.sh laptop login --restore-keyring'
    ['saltern certificate install']='Tests/Integration/certificates.sh certificate_status 0 install --chain'
    ['certificate install']='Tests/Integration/certificates.sh certificate_status 0 install --chain'
    ['saltern reload PID']='Tests/Integration/certificates.sh saltern reload'
    ['saltern account restore-keyring USERID [--revision N]']='Tests/Integration/admin.sh account restore-keyring --revision'
    ['saltern account restore-keyring USERID']='Tests/Integration/admin.sh account restore-keyring --revision'
    ['--revision N']='Tests/Integration/admin.sh account restore-keyring --revision'
    ['saltern plan remove NAME']='Tests/Integration/admin.sh run_command 0 plan remove large'
    ['--reason TEXT']='' ["\$USER"]=''
    ['[fe80::1%eth0]:8443']=''
    ['saltern serve']='scripts/package.d/life.sh /usr/bin/saltern serve)'
    ['--']='' ['SALTERN_SERVICE_HOST']=''
    ['systemctl edit saltern']='' ['systemctl status']='' ['fsGroup']=''
    ['\u001b']='' ['\u{1b}']='' ["saltern account lock -- \"\$userid\""]=''
    ['saltern migrate distribute']='Tests/Integration/lib.sh migrate distribute'
    ['--pg-service']='scripts/package.d/life.sh setup --only-database --pg-service maker'
    ['--keep-pins']='Tests/Integration/certificates.sh certificate_status 1 install'
    ['saltern certificate check --days 30 --host NAME']='Tests/Integration/certificates.sh check --directory'
    ['saltern certificate check [--host NAME]… [--days N]']='Tests/Integration/certificates.sh check --directory'
    ['saltern certificate install --chain FILE --key FILE [--keep-pins]']='Tests/Integration/certificates.sh --keep-pins'
    ['saltern certificate renew [--host NAME]…']='Tests/Integration/certificates.sh --host'
    ['--registration']='scripts/package.d/setup --registration MODE'
    ['man saltern']='scripts/package man --warnings' ['man saltern-admin']='scripts/package saltern-admin.8'
    ['systemctl show --property LimitNOFILE saltern']=''
    ['systemd-analyze security saltern']='scripts/package systemd-analyze security'
    # Settings of PostgreSQL and Citus.
    [archive_timeout]="scripts/pitr type_block 'Point-in-time recovery 3'"
    [citus.enable_local_execution]='scripts/citus know_settings' [citus.node_conninfo]='scripts/citus know_settings'
    [citus.recover_2pc_interval]='scripts/citus know_settings'
    # Options of others, files, addresses, and a name for something.
    [https://HOST:PORT]=''
    [https://localhost:9464/metrics]='scripts/compose.d/life.sh watch_it'
    ['saltern-admin setup --pg-service NAME']='scripts/package.d/life.sh setup --only-database --pg-service maker'
    ['apt-get install postgresql-17 postgresql-client-17']='' [postgresql-client-17]=''
    ['systemctl is-failed saltern-backup']='' [OnFailure]='' ['journalctl -u saltern -n 20']=''
    ['postgresql://saltern_app:…@db1,db2/saltern?target_session_attrs']=''
    ['docker-compose restart server']='scripts/compose.d/life.sh docker-compose restart server'
    ['docker-compose run --rm --entrypoint ls admin backups']='scripts/compose.d/life.sh --entrypoint ls'
    ['systemctl edit saltern-backup']='' [PrivateUsers]='' [saltern@]=''
    [/var/backups/saltern/saltern-TIME.backup]='' [saltern-TIME.tar]=''
    [/var/backups/saltern-keys/saltern-keys-TIME.tar]=''
    [repo1-host]='' [repo1-type]='' [sslmode]='' [pg_upgrade]='' [accounts.locked_at]=''
    [NAME.….unfinished]=''
    [.build/package/saltern_VERSION_ARCHITECTURE.deb]='' [/etc/pgbackrest.conf]=''
    [docs/observability/alerts.yml]='' [docs/observability/dashboard.json]=''
)
declare -A asked_for=()

# require_spoken WORDS
require_spoken() {
    [[ -v spoken[$1] ]] || fail "somebody to type what docs/admin says, or a test to have it: $1"
    is_said_elsewhere "$1" || fail "${spoken[$1]#* } in ${spoken[$1]%% *}"
    asked_for[$1]=yes
}

handbook_commands | sort --unique >"$work/commands"
(($(wc --lines <"$work/commands") >= 40)) || fail "to find the table of commands"
while read -r span; do
    if is_typed "$span"; then continue; fi
    case $span in
        'GET /'* | 'POST /'* | 'HEAD /'*) continue ;;
        scripts/*) is_said_by_script "$span" && continue ;;
    esac
    # A row of the table has the first words once.
    if grep --quiet " $(printf '%s' "$span" | sed 's/[][\.*^$]/\\&/g')$" "$work/commands"; then continue; fi
    require_spoken "$span"
done < <(handbook_spans | grep --extended-regexp ' |^--' && cat "$work/commands")

scenario "every other word of the text is one of the program or of a test"
# lines_in FILE…: those of all files there, without remarks.
lines_in() {
    (cd -- "$repository" && grep --recursive --no-filename --binary-files=without-match --exclude=handbook.sh \
        --invert-match --extended-regexp '^ *(#|//)' "$@")
}
lines_in scripts Tests/Integration >"$work/tests"
lines_in Sources Migrations openapi.yaml docs/observability docker-compose.yml docker-compose.standby.yml >"$work/program"
while read -r word; do
    if [[ -v spoken[$word] ]]; then
        require_spoken "$word"
        continue
    fi
    if grep --quiet --fixed-strings --word-regexp -- "$word" "$work/tests"; then continue; fi
    case $word in
        SALTERN_* | pg_*) ;;
        # Commands for PgBouncer, PostgreSQL or Citus are executed.
        [A-Z]*[A-Z] | citus*) fail "a test that has what docs/admin says: $word" ;;
    esac
    grep --quiet --fixed-strings --word-regexp -- "$word" "$work/program" || require_spoken "$word"
done < <(handbook_spans | grep --invert-match --extended-regexp ' |^--|^[0-9]+[smhd]?$' |
    sed --regexp-extended 's/\{[a-z,]+\}$//; s/=.*//; s/\(\)$//' | sort --unique)
for words in "${!spoken[@]}"; do
    [[ -v asked_for[$words] ]] || fail "the handbook to say what it was found a place for: $words"
done

scenario "nothing is listed as typed elsewhere that is not there"
for name in "${!elsewhere[@]}"; do
    grep --quiet --line-regexp --fixed-strings -- "$name" "$work/blocks" || fail "a block $name in docs/admin"
    grep --quiet --extended-regexp "(type_block|handbook_block) '$name'" <(lines_of "$repository/${elsewhere[$name]}") ||
        fail "a call for '$name' in ${elsewhere[$name]}"
done

scenario "every block that a script types is there"
(cd -- "$repository" && grep --recursive --no-filename --only-matching --perl-regexp --binary-files=without-match \
    "(type_block|handbook_block) '\\K[^'\$]+ [0-9]+(?=')" scripts Tests/Integration) | sort --unique >"$work/asked"
(($(wc --lines <"$work/asked") >= 25)) || fail "to find the names in the scripts"
while read -r name; do
    grep --quiet --line-regexp --fixed-strings -- "$name" "$work/blocks" || fail "a block $name in docs/admin"
done <"$work/asked"
