#!/usr/bin/env bash
# The commands of the administrator: what they print, and with which status they end.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# run_command STATUS ARGUMENT…: runs saltern, wants this exit status, and keeps what it said in $said.
run_command() {
    local wanted=$1 result=0
    shift
    said=$(saltern "$@" 2>&1 </dev/null) || result=$?
    ((result == wanted)) || fail "saltern $* to end with $wanted, not $result: $said"
}

# bare ARGUMENT…: the command without any of the server's settings.
bare() { env --ignore-environment PATH="$PATH" "$@"; }

says() { [[ $said == *"$1"* ]] || fail "saltern to say: $1; it said: $said"; }

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
[[ $active == sha256//$(openssl x509 -in "$certificate" -noout -pubkey | openssl pkey -pubin -outform DER |
    openssl dgst -sha256 -binary | openssl base64) ]] || fail "the pin of the certificate"
saltern certificate export --der >"$work/certificate.der"
openssl x509 -in "$certificate" -outform DER | cmp --silent - "$work/certificate.der" || fail "the certificate in DER"
run_command 0 certificate check
if grep --quiet '^problem' <<<"$said"; then fail "no problem: $said"; fi

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
chmod 0640 "$work/tls/key.pem"
run_command 1 certificate check --directory "$work/tls"
says 'chmod 600'
chmod 0600 "$work/tls/key.pem"
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$work/tls/key.pem" 2>/dev/null
chmod 0600 "$work/tls/key.pem"
run_command 1 certificate check --directory "$work/tls"
says 'another certificate'

scenario "every statement the server executes can be read"
saltern statements >"$work/statements"
(($(jq --slurp 'map(select(.name and .sql)) | length' "$work/statements") >= 15)) || fail "the statements as JSON lines"

scenario "a wrong configuration is refused as a whole, one line for each problem"
result=0
bare SALTERN_LISTN=127.0.0.1:1 SALTERN_LISTEN=nowhere SALTERN_KDF_MINIMUM_ITERATIONS=9999 SALTERN_LOG_LEVEL=loud \
    SALTERN_SESSION_IDLE_TIMEOUT=soon SALTERN_SALT_PREFIX=x: SALTERN_TLS_DIRECTORY="$work/nothing" \
    "$executable" serve >"$work/problems" 2>&1 </dev/null || result=$?
((result == 1)) || fail "exit status 1, which is $result"
for name in SALTERN_LISTN SALTERN_LISTEN SALTERN_LOG_LEVEL SALTERN_SESSION_IDLE_TIMEOUT SALTERN_TLS_DIRECTORY \
    SALTERN_DATABASE_URL SALTERN_MASTER_KEY_FILE 'KDF iterations'; do
    grep --quiet -- "$name" "$work/problems" || fail "a line about $name: $(cat "$work/problems")"
done

scenario "a secret may come as a file, and is never printed"
printf 'postgresql://someone:hunter2-canary@127.0.0.1:1/nothing?connect_timeout=1\n' >"$work/url"
result=0
bare SALTERN_DATABASE_URL_FILE="$work/url" SALTERN_SALT_PREFIX=x: SALTERN_TLS_DIRECTORY="$SALTERN_TEST_HOME/tls" \
    SALTERN_MASTER_KEY_FILE="$SALTERN_TEST_HOME/master.key" \
    SALTERN_LISTEN="127.0.0.1:$(free_port)" timeout 60 "$executable" serve >"$work/problems" 2>&1 </dev/null || result=$?
((result == 1)) || fail "exit status 1, which is $result: $(cat "$work/problems")"
if grep --quiet hunter2-canary "$work/problems"; then fail "no password in: $(cat "$work/problems")"; fi

scenario "another salt prefix than the database's is refused: it would lock everybody out"
serve_with_another_prefix() (
    # shellcheck source=/dev/null
    source "$SALTERN_TEST_HOME/run.env"
    unset "${!SALTERN_TEST_@}"
    timeout 60 env SALTERN_LISTEN="127.0.0.1:$(free_port)" SALTERN_SALT_PREFIX=another: "$executable" serve
)
result=0
serve_with_another_prefix >"$work/problems" 2>&1 </dev/null || result=$?
((result == 1)) || fail "exit status 1, which is $result: $(cat "$work/problems")"
grep --quiet 'salt prefix' "$work/problems" || fail "it to say why: $(cat "$work/problems")"

# documented_sql FIRST-WORDS: the statement of docs/admins.md that begins so, for this account.
documented_sql() {
    awk -v first="$1" 'index($0, first) == 1 { found = 1 } found { print } found && /;/ && first != "BEGIN" { exit } /^COMMIT/ { found = 0 }' \
        "$repository/docs/admins.md" | sed "s/'…'/'$account_id'/; s/ada@example.org/$userid/"
}

scenario "the handbook's SQL finds, locks and unlocks an account"
register ada
[[ $(query "$(documented_sql 'SELECT account_id')") == "$account_id" ]] || fail "the account to be found"
query "$(documented_sql 'UPDATE saltern.accounts SET locked_at')"
request GET /v1/account
expect_problem 401 unauthenticated
kept=$token
token=
request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"}"
expect_problem 401 wrong_credentials
query "UPDATE saltern.accounts SET locked_at = NULL WHERE account_id = '$account_id'"
token=$kept
request GET /v1/account
expect_status 200

scenario "… gives it another plan"
saltern plan set large --items 100000 >/dev/null
saltern account set-plan "$userid" large >/dev/null
request GET /v1/account
expect_json .plan large
expect_json .limits.items 100000

scenario "… and deletes it, with everything it has"
request PUT "/v1/items/$(uuid)" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" --header 'If-None-Match: *'
expect_status 201
item=$(uuid)
request PUT "/v1/items/$item" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" --header 'If-None-Match: *'
request DELETE "/v1/items/$item" '' --header 'If-Match: *'
expect_status 200
query "$(documented_sql BEGIN)"
request GET /v1/account
expect_problem 401 unauthenticated
left=$(query "SELECT (SELECT count(*) FROM saltern.accounts WHERE account_id = '$account_id')
    + (SELECT count(*) FROM saltern.sessions WHERE account_id = '$account_id')
    + (SELECT count(*) FROM saltern.items WHERE account_id = '$account_id')
    + (SELECT count(*) FROM saltern.deleted_contents WHERE account_id = '$account_id')
    + (SELECT count(*) FROM saltern.logins WHERE userid = '$userid')")
[[ $left == 0 ]] || fail "no row to be left, which are $left"
query "DELETE FROM saltern.plans WHERE plan = 'large'"
