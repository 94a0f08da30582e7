#!/usr/bin/env bash
# A second factor, with the codes of pyotp, an independent implementation of RFC 6238. And the master key that seals its secret:
# rotation during sessions, and the effect of a missing key.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools
start_own_server

# log_in_with [CODE]: the reply to a log-in.
log_in_with() { try_log_in "${1:+\"totp\":\"$1\"}"; }

scenario "a secret is made, and pyotp reads its URI"
register ada
request POST /v1/account/totp "{\"currentPasswordKey\":\"$(random_base64 32)\"}"
expect_problem 403 wrong_credentials
request POST /v1/account/totp "$(proof)"
expect_status 201
secret=$(json .secret)
read -r name issuer digits interval parsed < <("$repository/.venv/bin/python" -c '
import sys, pyotp
totp = pyotp.parse_uri(sys.argv[1])
print(totp.name, totp.issuer, totp.digits, totp.interval, totp.secret)' "$(json .uri)")
[[ $name == "$userid" && $issuer == Saltern && $digits == 6 && $interval == 30 && $parsed == "$secret" ]] ||
    fail "the URI to say who, whose and how: $name $issuer $digits $interval"

# confirm_now: with a code that counts, and log_in_afresh, too. log_in_now [SECONDS]: with the code of now, or of later.
confirm_now() {
    code=$(unused_code "$secret")
    request POST /v1/account/totp/confirm "{\"totp\":\"$code\"}"
}
log_in_afresh() {
    code=$(unused_code "$secret")
    log_in_with "$code"
}
log_in_now() { log_in_with "$(one_time_code "$secret" "${1:-0}")"; }

scenario "it counts once a code has confirmed it"
log_in_with
expect_status 201
request POST /v1/account/totp/confirm "{\"totp\":\"$(one_time_code "$secret" 3600)\"}"
expect_problem 403 wrong_totp
expect_in_time 200 confirm_now
expect_json '.recoveryCodes | length' 10
mapfile -t recovery_codes < <(json '.recoveryCodes[]')
request GET /v1/account
expect_json .secondFactor.totp true
request POST /v1/account/totp "$(proof)"
expect_problem 409 totp_enabled

scenario "a log-in needs the code after the right key, and says nothing of it after a wrong one"
log_in_with
expect_problem 401 totp_required
log_in_with "$code"
expect_problem 401 wrong_totp
good_key=$password_key
password_key=$(random_base64 32)
log_in_with
expect_problem 401 wrong_credentials
password_key=$good_key
expect_in_time 201 log_in_afresh
log_in_with "$code"
expect_problem 401 wrong_totp

scenario "a phone whose clock is 30 seconds ahead gets in, one that is minutes off does not"
expect_in_time 201 log_in_now 30
expect_in_time 401 log_in_now 150
expect_json .code wrong_totp

scenario "fifty devices with the same recovery code: one gets in"
lower=${recovery_codes[0],,}
for number in $(seq 50); do
    printf 'url = "%s/v1/sessions"\noutput = "%s/answer-%s"\n' "$SALTERN_TEST_URL" "$work" "$number"
    printf 'cacert = "%s"\nheader = "Content-Type: application/json"\n' "$certificate"
    printf 'data = "{\\"userid\\":\\"%s\\",\\"passwordKey\\":\\"%s\\",\\"totp\\":\\"%s\\"}"\nnext\n' \
        "$userid" "$password_key" "${lower//-/ }"
done | sed '$d' >"$work/curl"
curl --no-progress-meter --noproxy '*' --parallel --parallel-immediate --parallel-max 50 --config "$work/curl"
opened=$(cat "$work"/answer-* | jq --slurp 'map(select(.session)) | length')
[[ $opened == 1 ]] || fail "one session, not $opened: $(jq --raw-output .code "$work"/answer-* | sort | uniq -c)"
request GET /v1/account
expect_json .secondFactor.recoveryCodesLeft 9

scenario "what happened is in the person's security log"
request GET '/v1/account/events?limit=100'
expect_status 200
for kind in totp_enabled totp_code_used second_factor_failed; do
    expect_json "[.events[].kind] | contains([\"$kind\"])" true
done

# The earlier failures would delay these log-ins.
forget_failures() { query 'DELETE FROM saltern.failed_attempts'; }

has_reloaded_twice() { (($(grep --count master_key_reloaded "$own_home/run.log") == 2)); }

scenario "the master key is rotated and everything sealed anew while the server runs"
forget_failures
before=$(query 'SELECT sealed_secret FROM saltern.second_factors')
saltern master-key rotate >"$work/keys"
[[ $(cut --delimiter ' ' --fields 1 "$work/keys" | tr '\n' ' ') == "active older " ]] || fail "two keys: $(cat "$work/keys")"
result=0
saltern master-key prune >"$work/refusal" 2>&1 || result=$?
((result == 1)) || fail "the older key to be needed still"
kill -HUP "$(own_server_process)"
wait_until 180 grep --quiet master_key_reloaded "$own_home/run.log" || fail "the server to read the new key"
expect_in_time 201 log_in_afresh
saltern master-key reseal
saltern master-key prune >"$work/keys"
[[ $(wc -l <"$work/keys") == 1 ]] || fail "one key: $(cat "$work/keys")"
[[ $(query 'SELECT sealed_secret FROM saltern.second_factors') != "$before" ]] || fail "the secret to be sealed anew"
kill -HUP "$(own_server_process)"
wait_until 180 has_reloaded_twice || fail "the server to read the key"
expect_in_time 201 log_in_afresh

scenario "without the master key nobody gets past, the log says which key is missing, and a recovery code works"
stop_own_server
mv -- "$own_home/master.key" "$work/master.key"
start_own_server
missing=$(sed -n 's/^active  //p' "$work/keys")
wait_until 180 grep --quiet "\"event\":\"master_key_missing\",\"key\":\"$missing\"" "$own_home/run.log" ||
    fail "a line about the missing key $missing"
log_in_with "$(one_time_code "$secret")"
expect_problem 503 second_factor_unavailable
wait_until 180 grep --quiet second_factor_unreadable "$own_home/run.log" || fail "a line about the secret"
log_in_with "${recovery_codes[1]}"
expect_status 201
log_in_with
expect_problem 401 totp_required

scenario "a key file that others can read is refused"
chmod 0644 "$own_home/master.key"
kill -HUP "$(own_server_process)"
wait_until 180 grep --quiet master_key_not_reloaded "$own_home/run.log" || fail "the server to refuse it"
stop_own_server
mv -- "$work/master.key" "$own_home/master.key"
start_own_server
expect_in_time 201 log_in_afresh

scenario "the person removes it, and the password is enough again"
request DELETE /v1/account/totp "$(proof)"
expect_status 204
log_in_with
expect_status 201
[[ $(query 'SELECT (SELECT count(*) FROM saltern.second_factors) + (SELECT count(*) FROM saltern.second_factor_codes)') == 0 ]] ||
    fail "nothing to be left of it"

scenario "an admin removes it for somebody who has lost everything, and the audit log knows"
request POST /v1/account/totp "$(proof)"
secret=$(json .secret)
expect_in_time 200 confirm_now
saltern account remove-second-factor "$userid" >"$work/removed"
grep --quiet "$account_id" "$work/removed" || fail "the account to be named: $(cat "$work/removed")"
log_in_with
expect_status 201
grep --quiet second_factor_removed <<<"$(saltern audit list)" || fail "a row of the audit log"
saltern audit verify >/dev/null
