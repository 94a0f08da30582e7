#!/usr/bin/env bash
# Types every command of docs/admins.md, those of the blocks in their order and then those of the text, on a throw-away
# PostgreSQL with servers of its own (start_own_server); tries its other blocks; and says where the rest is typed. What nobody
# types, or tries, fails.
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
# PostgreSQL's system user has to pass through it; nobody but that user and root reaches the sockets.
chmod 0711 -- "$folder"
postgres_authentication=trust
PATH=$(dirname -- "$executable"):$PATH
# The server refuses settings that it does not know.
for name in "${!SALTERN_TEST_@}"; do
    export -n "${name?}"
done

# shellcheck disable=SC2317  # the trap calls it
end() {
    local result=$?
    stop_own_server || result=1
    postgres_stop
    rm -rf -- "$folder"
    (exit "$result") || finish
    finish
}
trap end EXIT

# Blocks that are typed, or tried, by another script, which has their names in it.
declare -A elsewhere=(
    ['Behind a proxy nginx 1']=Tests/Integration/proxies.sh
    ['Shares nginx 1']=Tests/Integration/proxies.sh
    ['To any moment 1']=scripts/pitr
    ['To any moment ini 1']=scripts/lib/handbook.sh
    ['To any moment text 1']=scripts/pitr
    ['To any moment 2']=scripts/pitr
    ['To any moment 3']=scripts/pitr
    ['On a cluster sql 1']=scripts/lib/cluster.sh
    ['On a cluster 1']=scripts/citus
    ['Backups of a cluster sql 1']=scripts/citus
    ['Backups of a cluster 1']=scripts/citus
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
((number >= 38)) || fail "to find the handbook's blocks, not $number"

scenario "what the text says without a block"
types_settings=
: >"$work/said"
type_in <"$repository/Tests/Integration/handbook/text.sh"

scenario "every command of the text was typed"
# is_typed WORDS: on one line, but for what stands for something else: NAME, [--json], …
is_typed() {
    local words pattern='' word
    read -ra words <<<"$1"
    for word in "${words[@]}"; do
        [[ $word == *…* || $word =~ ^[][A-Z:|]+$ ]] || pattern+="(?=.*(?<![\\w-])\\Q${word//[][]/}\\E(?![\\w-]))"
    done
    grep --quiet --perl-regexp -- "^$pattern" "$work/typed"
}

# What has a space, or is an option, and is no command; commands with the script that has them, and its words.
declare -A spoken=(
    ['CONNECTION LIMIT']='Tests/Integration/backup.sh CONNECTION LIMIT 6'
    ['"allowed": 10']='' ['"limit": "items"']='' ['head SEQUENCE:HASH']='' ['package=SHA-256 of the signing certificate']=''
    ['--reuse-key']='' ['--executable']='' ['keytool -list -v']='' ['apt upgrade']='' ['ulimit -n']=''
    ['libevent-core-2.1-7 libpq5 libssl3 libstdc++6']=''
    ['ca_file: certificate.pem']='Tests/Integration/metrics.sh scrape --cacert'
    ['log_error_verbosity = terse']='scripts/lib/postgres.sh log_error_verbosity=terse'
    ['max_prepared_statements = 500']='Tests/Integration/pooler.sh max_prepared_statements = 500'
    ['http-request set-log-level silent if { path_beg /s/ /v1/shares }']='Tests/Integration/proxies.sh http-request set-log-level'
    ["shared_preload_libraries = 'citus'"]='scripts/lib/cluster.sh cluster_tools'
    ["citus.node_connection_timeout = '3s'"]="scripts/lib/cluster.sh citus.node_connection_timeout = '3s'"
    ['CREATE DATABASE saltern']='scripts/lib/cluster.sh cluster_tools' ['CREATE EXTENSION citus']='scripts/lib/cluster.sh cluster_tools'
    ['saltern-client login --restore-keyring']='Tests/Integration/client-mishaps.sh laptop login --restore-keyring'
    ['man saltern']='scripts/package man --warnings' ['man saltern-admin']='scripts/package saltern-admin.8'
    ['systemctl show --property LimitNOFILE saltern']=''
    ['systemd-analyze security saltern']='scripts/package systemd-analyze security'
)
handbook_commands | sort --unique >"$work/commands"
(($(wc --lines <"$work/commands") >= 40)) || fail "to find the table of commands"
while read -r span; do
    if is_typed "$span"; then continue; fi
    case $span in
        'GET /'* | 'POST /'* | 'HEAD /'*) continue ;;
        scripts/*) is_said_by_script "$span" && continue ;;
    esac
    # A row of the table says the first words once.
    if grep --quiet " $(printf '%s' "$span" | sed 's/[][\.*^$]/\\&/g')$" "$work/commands"; then continue; fi
    [[ -v spoken[$span] ]] || fail "somebody to type what docs/admins.md says: $span"
    [[ -z ${spoken[$span]} ]] ||
        grep --quiet --fixed-strings -- "${spoken[$span]#* }" "$repository/${spoken[$span]%% *}" || fail "${spoken[$span]}"
done < <(handbook_spans | grep --extended-regexp ' |^--' && cat "$work/commands")

scenario "nothing is listed as typed elsewhere that is not there"
for name in "${!elsewhere[@]}"; do
    grep --quiet --line-regexp --fixed-strings -- "$name" "$work/blocks" || fail "a block $name in docs/admins.md"
    grep --quiet --fixed-strings -- "$name" "$repository/${elsewhere[$name]}" || fail "$name in ${elsewhere[$name]}"
done
