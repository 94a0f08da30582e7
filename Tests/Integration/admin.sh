#!/usr/bin/env bash
# The administrative commands: their output and exit statuses.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# bare ARGUMENT…: the command without any of the server's settings, in place of the shell that calls it.
bare() { exec env --ignore-environment PATH="$PATH" "$@"; }

# audited ACTION ACCOUNT DETAIL: a row of the audit log that saltern has listed ends with these three.
audited() {
    tr --squeeze-repeats ' ' <<<"$said" | grep --quiet " $1 $2 $3 *\$" || fail "a row with $*: $said"
}

scenario "help is where one looks for it"
run_command 0 --help
for name in serve 'migrate up' 'migrate status' 'migrate verify' 'certificate create' 'certificate rotate' health; do
    says "$name"
done
run_command 0 serve --help
says SALTERN_DATABASE_URL
says SALTERN_SALT_PREFIX
run_command 64 frobnicate
run_command 64 certificate create
run_command 64 health --sloppy

scenario "health asks the server on this machine"
run_command 0 health
[[ $said == ok ]] || fail "ok"
run_command 0 health --ready

scenario "pins, certificate and check agree"
run_command 0 certificate pins
active=$(sed -n 's/^active *//p' <<<"$said")
[[ $active == "$(pin_of "$certificate")" ]] || fail "the pin of the certificate"
saltern certificate export --der >"$work/certificate.der"
openssl x509 -in "$certificate" -outform DER | cmp --silent - "$work/certificate.der" || fail "the certificate in DER"
run_command 0 certificate check
if grep --quiet '^problem' <<<"$said"; then fail "no problem: $said"; fi

scenario "what is shown can be had as an object"
while read -r words filter; do
    # shellcheck disable=SC2086  # several words
    said=$(saltern ${words//_/ } --json)
    jq --exit-status "$filter" <<<"$said" >/dev/null || fail "$filter of ${words//_/ }: $said"
done <<FILTERS
certificate_pins .active=="$active" and (.backup|startswith("sha256//"))
certificate_check .problems==0 and (.findings|length>3 and all(.severity!="problem"))
master-key_list .keys|length>0
migrate_status .migrations[0]|.file=="0001_accounts_sessions_items.sql" and .known and (.appliedAt|length>0)
FILTERS

scenario "the doctor finds nothing to mend here, and elsewhere says what"
run_command 0 doctor
says 'the schema is current'
if grep --quiet '^problem' <<<"$said"; then fail "no problem: $said"; fi
run_command 0 doctor --json
[[ $(jq --raw-output '.findings[] | select(.subject == "clock").severity' <<<"$said") == fine ]] || fail "clocks that agree: $said"
if said=$(bare SALTERN_TLS_DIRECTORY="$work/nowhere" "$executable" doctor 2>&1); then fail "the doctor to end with 1"; fi
says "$work/nowhere"
says 'SALTERN_DATABASE_URL is missing'

nowhere=SALTERN_DATABASE_URL=postgresql://saltern@127.0.0.1:1/saltern
if said=$(with_settings "$nowhere" "$executable" doctor 2>&1); then fail "the doctor to end with 1: $said"; fi
[[ $(grep --count 'Connection refused' <<<"$said") == 1 ]] || fail "what is wrong with the database, once: $said"

scenario "the doctor looks whether this process may listen, and write, where the settings say"
powerless=()
if ((EUID == 0)); then
    powerless=(setpriv --bounding-set '-net_bind_service,-dac_override,-dac_read_search')
fi
mkdir --mode 0500 "$work/sealed"
if said=$(with_settings SALTERN_LISTEN=127.0.0.1:443 SALTERN_HANDOVER_SOCKET="$work/sealed/handover" \
    "${powerless[@]}" "$executable" doctor 2>&1); then
    fail "the doctor to end with 1: $said"
fi
says "problem: SALTERN_HANDOVER_SOCKET: nothing can be written in $work/sealed"
(($(</proc/sys/net/ipv4/ip_unprivileged_port_start) <= 443)) || says 'warning: SALTERN_LISTEN: this process may not listen on port 443'

scenario "a certificate is renewed for the same key"
saltern certificate create --host localhost --directory "$work/renewed" >"$work/pins"
cp "$work/renewed/certificate.pem" "$work/old.pem"
saltern certificate renew --directory "$work/renewed" | cmp - "$work/pins" || fail "the pins to stay"
if cmp --silent "$work/renewed/certificate.pem" "$work/old.pem"; then fail "another certificate"; fi
run_command 0 certificate check --directory "$work/renewed"

scenario "the version is that of the list of changes"
run_command 0 --version
grep --quiet --line-regexp "## ${said#saltern }" "$repository/CHANGELOG.md" || fail "CHANGELOG.md to have $said"

scenario "a certificate for clients: verifies against itself, names its hosts, is for servers, lasts 397 days"
saltern certificate create --host api.example.org --host 192.0.2.7 --directory "$work/tls" >"$work/pins"
openssl verify -CAfile "$work/tls/certificate.pem" -purpose sslserver -verify_hostname api.example.org \
    "$work/tls/certificate.pem" >/dev/null || fail "openssl to verify it"
openssl verify -CAfile "$work/tls/certificate.pem" -purpose sslserver -verify_ip 192.0.2.7 \
    "$work/tls/certificate.pem" >/dev/null || fail "openssl to verify it"
openssl x509 -in "$work/tls/certificate.pem" -noout -checkend $((396 * 86400)) >/dev/null || fail "396 days to be left"
if openssl x509 -in "$work/tls/certificate.pem" -noout -checkend $((398 * 86400)) >/dev/null; then fail "at most 398 days"; fi
for file in key.pem backup-key.pem; do
    [[ $(stat --format %a "$work/tls/$file") == 600 ]] || fail "$file to be its owner's alone"
done

scenario "nothing is ever overwritten"
before=$(cat "$work/tls/"*.pem | openssl dgst -sha256)
run_command 1 certificate create --host api.example.org --directory "$work/tls"
says 'exists already'
[[ $(cat "$work/tls/"*.pem | openssl dgst -sha256) == "$before" ]] || fail "the files to be as they were"

scenario "check notices what would hurt"
chmod 0644 "$work/tls/key.pem"
run_command 2 certificate check --directory "$work/tls"
says 'chmod 600'
chmod 0600 "$work/tls/key.pem"
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$work/tls/key.pem" 2>/dev/null
chmod 0600 "$work/tls/key.pem"
run_command 2 certificate check --directory "$work/tls"
says 'another certificate'

scenario "every statement the server executes can be read"
saltern statements >"$work/statements"
(($(jq --slurp 'map(select(.name and .sql)) | length' "$work/statements") >= 15)) || fail "the statements as JSON lines"

scenario "a wrong configuration is refused as a whole, one line for each problem"
result=0
(bare SALTERN_LISTN=127.0.0.1:1 SALTERN_LISTEN=nowhere SALTERN_KDF_MINIMUM_ITERATIONS=9999 SALTERN_LOG_LEVEL=loud \
    SALTERN_SESSION_IDLE_TIMEOUT=soon SALTERN_SALT_PREFIX=x: SALTERN_TLS_DIRECTORY="$work/nothing" \
    "$executable" serve) >"$work/problems" 2>&1 </dev/null || result=$?
((result == 78)) || fail "exit status 78, which is $result"
for name in SALTERN_LISTN SALTERN_LISTEN SALTERN_LOG_LEVEL SALTERN_SESSION_IDLE_TIMEOUT SALTERN_TLS_DIRECTORY \
    SALTERN_DATABASE_URL SALTERN_MASTER_KEY_FILE SALTERN_KDF_MINIMUM_ITERATIONS; do
    grep --quiet -- "$name" "$work/problems" || fail "a line about $name: $(cat "$work/problems")"
done

scenario "a secret may come as a file, and is never printed; a database that is not there yet is waited for"
printf 'postgresql://someone:hunter2-canary@127.0.0.1:1/nothing?connect_timeout=1\n' >"$work/url"
waiting_port=$(free_port)
bare SALTERN_DATABASE_URL_FILE="$work/url" SALTERN_SALT_PREFIX=x: SALTERN_TLS_DIRECTORY="$SALTERN_TEST_HOME/tls" \
    SALTERN_MASTER_KEY_FILE="$SALTERN_TEST_HOME/master.key" \
    SALTERN_LISTEN="127.0.0.1:$waiting_port" "$executable" serve >"$work/problems" 2>&1 </dev/null &
waiting=$!
wait_until 180 grep --quiet '"event":"waiting_for_database"' "$work/problems" || fail "the log to say so: $(cat "$work/problems")"
grep --quiet 'Connection refused' "$work/problems" || fail "the reason: $(cat "$work/problems")"
[[ /proc/$waiting/exe -ef $executable ]] || fail "the server to wait, not a shell"

scenario "… and meanwhile the server is alive, not ready, and refuses everything else"
# ask PATH [CURL-ARGUMENT…]: fills status, headers and body.
ask() {
    status=$(curl --silent --show-error --noproxy '*' --max-time 180 --cacert "$certificate" --dump-header "$work/headers" \
        --output "$work/body" --write-out '%{http_code}' "${@:2}" "https://localhost:$waiting_port$1")
    headers=$(tr -d '\r' <"$work/headers") body=$(<"$work/body")
}
ask /v1/health/live
expect_status 200
expect_json .status live
for path in /v1/health/ready /v1/service /v1/items /nowhere; do
    ask "$path"
    expect_problem 503 database_unavailable
    expect_header retry-after 5
done
ask /v1/sessions --header 'Content-Type: application/json' --data '{}'
expect_problem 503 database_unavailable
with_settings SALTERN_LISTEN="127.0.0.1:$waiting_port" "$executable" health >/dev/null || fail "health to say that it is alive"
if with_settings SALTERN_LISTEN="127.0.0.1:$waiting_port" "$executable" health --ready 2>/dev/null; then
    fail "health --ready to say that it is not ready"
fi
is_running "$waiting" || fail "the server to wait"
end_process "$waiting" TERM 180
if grep --quiet hunter2-canary "$work/problems"; then fail "no password in: $(cat "$work/problems")"; fi

scenario "another salt prefix than the database's is refused: it would lock everybody out"
result=0
with_settings SALTERN_LISTEN="127.0.0.1:$(free_port)" SALTERN_SALT_PREFIX=another: timeout 300 "$executable" serve \
    >"$work/problems" 2>&1 </dev/null || result=$?
((result == 78)) || fail "exit status 78, which is $result: $(cat "$work/problems")"
grep --quiet 'SALTERN_SALT_PREFIX differs from' "$work/problems" || fail "it to say why: $(cat "$work/problems")"

scenario "an account is found, shown and listed"
register ada
run_command 0 account list --userid-prefix "$userid" --json
[[ $(jq --raw-output '.accounts[0].accountId' <<<"$said") == "$account_id" ]] || fail "the account to be listed: $said"
run_command 0 account list --userid-prefix "$userid"
says "$account_id"
run_command 0 account show "$userid"
says 'never changed'
[[ $said =~ one-time\ codes\ +off && $said =~ passkeys\ +none ]] || fail "no second factor: $said"
run_command 0 account show --id "$account_id" --json
[[ $(jq --raw-output .userid <<<"$said") == "$userid" ]] || fail "the account to be shown: $said"
run_command 1 account show nobody@example.org
says 'no account has this userid'

scenario "a locked account's sessions are over, and its key opens nothing until it is unlocked"
run_command 0 account lock "$userid" --actor grace
says "account $account_id is locked; 1 session has ended"
request GET /v1/account
expect_problem 401 unauthenticated
token=
request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"}"
expect_problem 401 wrong_credentials
run_command 0 account list --locked
says "$account_id"
run_command 0 account lock "$userid"
says 'was locked already'
run_command 0 account unlock "$userid"
# The failure above may have to be waited out.
logs_in_again() {
    request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"}"
    [[ $status == 201 ]]
}
wait_until 180 logs_in_again || fail "a log-in after the account was unlocked"
token=$(json .session.token)
request GET /v1/account
expect_status 200

scenario "… gets another plan"
run_command 0 plan set large --create --items 100000
run_command 0 account set-plan "$userid" large
request GET /v1/account
expect_json .plan large
expect_json .limits.items 100000
run_command 1 plan set lrage --items 5
says 'there is no plan lrage'
run_command 1 plan set large --items 0
says 'Lower the limits of all accounts with the plan large: items from 100000 to 0?'
run_command 1 plan remove large
says 'accounts have this plan'
run_command 0 account set-plan "$userid" default --reason 'ticket 12'
run_command 0 plan remove large
# Other scenarios write rows meanwhile.
run_command 0 audit list --limit 200
audited plan_assigned "$account_id" 'plan default, was large; reason: ticket 12'
audited plan_removed - 'plan large'

scenario "… is found by a part of its userid, and its sessions are listed"
run_command 0 account list --userid-part "${userid:1:12}"
says "$account_id"
run_command 0 account list --userid-prefix "${userid^^}"
says "try --userid-prefix '$userid'"
run_command 0 account list --plan lrage
says 'there is no plan lrage'
run_command 0 account sessions "$userid" --json
[[ $(jq '.sessions | length' <<<"$said") == 1 ]] || fail "one session: $said"
run_command 0 account sessions --id "$account_id"
says "$(query "SELECT session_id FROM saltern.sessions WHERE account_id = '$account_id'")"
run_command 1 account remove-second-factor --id "$account_id"
says 'has no second factor'

scenario "without /proc, as in a chroot, a command says what it needs, and does not crash"
if is_root; then
    result=0
    said=$(unshare --mount --propagation private bash -c 'umount --lazy /proc && exec "$@"' _ "$executable" plan list 2>&1) ||
        result=$?
    ((result == 1)) || fail "exit status 1, which is $result: $said"
    [[ $said == '/proc is missing, and this program needs it: mount -t proc proc /proc' ]] || fail "the reason: $said"
fi

scenario "a job's mail is empty when nothing is wrong"
said=$(saltern backup "$work/quiet.backup" 2>&1 >/dev/null) || fail "a backup: $said"
[[ -z $said ]] || fail "nothing on standard error: $said"

scenario "a URL whose password has characters of URLs says so, and no password"
for url in 'postgresql://app:p@canary@localhost/saltern' 'postgresql://app:p/canary@localhost/saltern' \
    'postgresql://app:p%zzcanary@localhost/saltern' 'postgresql://app:p?x@canary@localhost/saltern'; do
    if said=$(with_settings SALTERN_OWNER_DATABASE_URL="$url" "$executable" plan list 2>&1); then fail "$url to be refused"; fi
    says 'percent-encoded (@ is %40'
    [[ $said != *canary* ]] || fail "no part of the password: $said"
done

scenario "… has its keyring again after a session has replaced it"
run_command 1 account restore-keyring "$userid"
says 'the account has no kept keyring'
keyring=$(random_base64 120)
request PUT /v1/account/keyring "{\"keyring\":\"$keyring\"}" --header 'If-None-Match: *'
expect_status 201
for _ in 1 2; do
    request PUT /v1/account/keyring "{\"keyring\":\"$(random_base64 120)\"}" --header 'If-Match: *'
    expect_status 200
done
run_command 0 account show "$userid" --json
[[ $(jq .usage.keptKeyrings <<<"$said") == 2 ]] || fail "two kept keyrings: $said"
run_command 1 account restore-keyring "$userid"
says 'several keyrings are kept: name one with --revision; revision 1 was replaced at'
run_command 1 account restore-keyring --revision 3 "$userid"
says 'no keyring with this revision is kept'
run_command 0 account restore-keyring --revision 1 "$userid" --reason 'ticket 13'
says 'keyring 1 is in force again, as revision 4'
request GET /v1/account/keyring
expect_json .keyring "$keyring"
run_command 0 audit list --limit 200
audited keyring_restored "$account_id" 'revision 1 as 4; reason: ticket 13'

scenario "… loses its sessions on every node at once"
run_command 0 account end-sessions "$userid"
says '1 session has ended'
request GET /v1/account
expect_problem 401 unauthenticated

scenario "… reads all that in its security log"
log_in
request GET /v1/account/events
expect_status 200
for kind in locked unlocked plan_changed sessions_ended keyring_changed keyring_restored; do
    expect_json ".events | any(.kind == \"$kind\")" true
done
run_command 0 account events "$userid" --json
[[ $(jq '.events | any(.kind == "locked")' <<<"$said") == true ]] || fail "the same events: $said"

scenario "… and is deleted, with everything it has, when somebody says yes"
request PUT "/v1/items/$(uuid)" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" --header 'If-None-Match: *'
expect_status 201
item=$(uuid)
request PUT "/v1/items/$item" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" --header 'If-None-Match: *'
request DELETE "/v1/items/$item" '' --header 'If-Match: *'
expect_status 200
run_command 1 account delete "$userid"
says 'cannot ask for confirmation without a terminal'
request GET /v1/account
expect_status 200
run_command 0 account delete "$userid" --yes
request GET /v1/account
expect_problem 401 unauthenticated
tables=$(query "SELECT c.table_name FROM information_schema.columns c JOIN information_schema.tables USING (table_schema, table_name)
    WHERE c.table_schema = 'saltern' AND c.column_name = 'account_id'")
(($(wc -l <<<"$tables") >= 10)) || fail "the tables of accounts: $tables"
for table in $tables; do
    left=$(query "SELECT count(*) FROM saltern.$table WHERE account_id = '$account_id'")
    [[ $left == 0 ]] || fail "no row to be left in $table, which are $left"
done
query "DELETE FROM saltern.plans WHERE plan = 'large'"

scenario "accounts that nobody has ever used go, and nobody else"
register used
request PUT "/v1/items/$(uuid)" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" --header 'If-None-Match: *'
expect_status 201
used=$account_id
register young
young=$account_id
bots=()
for _ in 1 2 3; do
    register bot
    bots+=("$account_id")
done
in_list=$(printf ",'%s'" "$used" "${bots[@]}")
# All but the young one are old.
# Through a time without a zone, which is what a cluster computes with in an UPDATE.
earlier() { printf "%s = (%s AT TIME ZONE 'UTC' - interval '400 days') AT TIME ZONE 'UTC'" "$1" "$1"; }
query "UPDATE saltern.accounts SET $(earlier created_at) WHERE account_id IN (${in_list:1});
    UPDATE saltern.sessions SET $(earlier created_at), $(earlier last_used_at)
    WHERE account_id IN (${in_list:1})"
run_command 0 account delete --never-used --older-than 390d --dry-run
says '3 of'
run_command 1 account delete --never-used --older-than 390d
run_command 0 account delete --never-used --older-than 390d --yes
says 'deleted 3 of'
for account_id in "${bots[@]}"; do run_command 1 account show --id "$account_id"; done
for account_id in "$used" "$young"; do run_command 0 account show --id "$account_id"; done

scenario "stats count"
run_command 0 stats --json
(($(jq '.accounts.total' <<<"$said") >= 2)) || fail "two accounts at least: $said"
(($(jq '.databaseBytes' <<<"$said") > 1000000)) || fail "the size of the database: $said"
run_command 0 stats
says 'live sessions'
