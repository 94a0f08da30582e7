#!/usr/bin/env bash
# Services verify and inspect identity tokens across a rotation of the signing key, and pages of other origins read replies.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools

# The issuer has the port, so it is drawn before the start.
make_own_home
issuer=https://localhost:$own_port
keys=$own_home/signing-keys

scenario "a file of signing keys is private, and is never overwritten"
"$executable" signing-key create --file "$keys" >"$work/created"
[[ $(stat --format %a -- "$keys") == 600 ]] || fail "mode 600"
if "$executable" signing-key create --file "$keys" 2>"$work/errors"; then fail "the file to stay"; fi
"$executable" signing-key list --file "$keys" --json >"$work/list"
[[ $(jq --raw-output '.keys | map(.state) | join(" ")' "$work/list") == active ]] || fail "one active key"

scenario "an issuer needs keys and audiences"
# Without a database, which is asked for later than settings.
refused() {
    local status=0
    env --ignore-environment "$@" "$executable" serve >"$work/out" 2>&1 || status=$?
    ((status == 78)) || fail "status 78, not $status"
}
refused SALTERN_TOKEN_ISSUER="$issuer"
grep --quiet 'SALTERN_TOKEN_ISSUER needs SALTERN_SIGNING_KEY_FILE' "$work/out" || fail "the file to be named: $(<"$work/out")"
grep --quiet 'SALTERN_TOKEN_ISSUER needs SALTERN_TOKEN_AUDIENCES' "$work/out" || fail "audiences to be asked for"
refused SALTERN_TOKEN_ISSUER="$issuer/" SALTERN_TOKEN_AUDIENCES=A SALTERN_TOKEN_LIFETIME=61m SALTERN_ALLOWED_ORIGINS='*'
for name in SALTERN_TOKEN_ISSUER SALTERN_TOKEN_AUDIENCES SALTERN_TOKEN_LIFETIME SALTERN_ALLOWED_ORIGINS; do
    grep --quiet "$name must be" "$work/out" || fail "$name to be refused: $(<"$work/out")"
done

start_own_server SALTERN_TOKEN_ISSUER="$issuer" SALTERN_TOKEN_AUDIENCES=billing,support=account+userid \
    SALTERN_SIGNING_KEY_FILE="$keys" SALTERN_ALLOWED_ORIGINS=https://app.example.com SALTERN_RATE_LIMITS=off
register ada

scenario "a service is created once, and its credential is shown once"
credential=$(saltern service create billing-1 --audience billing --actor grace)
[[ $credential =~ ^sls_[A-Za-z0-9_-]{43}$ ]] || fail "a credential: $credential"
if saltern service create billing-1 --audience billing 2>/dev/null; then fail "the name to be taken"; fi
if saltern service create other --audience unknown 2>/dev/null; then fail "the audience to be unknown"; fi
[[ $(saltern service list --json | jq --raw-output '.services[] | "\(.service) \(.audience)"') == "billing-1 billing" ]] ||
    fail "the service in the list"
[[ $(query "SELECT count(*) FROM saltern.services WHERE position('$credential' IN services::text) > 0") == 0 ]] ||
    fail "the credential not to be stored"

scenario "PyJWT, joserfc and authlib verify tokens across a rotation, and refuse every forgery"
services() { SALTERN_TEST_SERVICE=$credential run_python "$repository/Tests/Integration/tokens.py" "$@"; }
services verify "$keys" "$(own_server_process)"

scenario "the back end of the documents works as it is written"
# shellcheck disable=SC2016  # backquotes are those of Markdown
sed -n '/^```python$/,/^```$/{/^```/d;p}' "$repository/docs/services.md" >"$work/example.py"
[[ -s $work/example.py ]] || fail "an example in docs/services.md"
services example "$work/example.py"

scenario "a reload that cannot use the signing keys fails, and the server keeps its keys"
cp -- "$keys" "$work/keys"
echo 'no key' >>"$keys"
if said=$(saltern reload "$(own_server_process)" 2>&1); then fail "the reload to fail"; fi
[[ $said == *'SALTERN_SIGNING_KEY_FILE: '* ]] || fail "the reload to name the file: $said"
wait_until 180 grep --quiet '"event":"signing_keys_not_reloaded"' "$own_home/run.log" || fail "a line in the log"
request GET /.well-known/jwks.json
expect_json '.keys | length' 1
# With the mode of the present file.
cp -- "$work/keys" "$keys"
said=$(saltern reload "$(own_server_process)" 2>&1) || fail "the reload to succeed: $said"

scenario "no kind of token works in the place of another, and an ended session has no active token"
request POST /v1/tokens '{"audience":"support"}'
expect_status 200
identity=$(json .token)
request POST /v1/tokens '{"audience":"billing"}'
billing=$(json .token)
session=$token
for token in "$identity" "$credential"; do
    request GET /v1/account
    expect_problem 401 unauthenticated
    request POST /v1/tokens '{"audience":"billing"}'
    expect_problem 401 unauthenticated
done
for token in "$session" "$identity"; do
    request POST /v1/tokens/inspect "{\"token\":\"$billing\"}"
    expect_problem 401 service_unauthenticated
done
token=$credential
request POST /v1/tokens/inspect "{\"token\":\"$billing\"}"
expect_json .active true
token=$session
request DELETE /v1/sessions/current
expect_status 204
token=$credential
request POST /v1/tokens/inspect "{\"token\":\"$billing\"}"
expect_json . '{
  "active": false
}'
saltern service remove billing-1 --actor grace >/dev/null
request POST /v1/tokens/inspect "{\"token\":\"$billing\"}"
expect_problem 401 service_unauthenticated
token=
audit=$(saltern audit list)
[[ $audit == *service_created* && $audit == *service_removed* ]] || fail "both acts in the audit log"

scenario "pages of an allowed origin read every reply, errors of the parser included"
origin=(--header 'Origin: https://app.example.com')
request OPTIONS /v1/account '' "${origin[@]}" --header 'Access-Control-Request-Method: PUT'
expect_status 204
expect_header access-control-allow-origin https://app.example.com
expect_header access-control-max-age 600
# readable STATUS: the reply to the page.
readable() {
    expect_status "$1"
    expect_header access-control-allow-origin https://app.example.com
    expect_header access-control-expose-headers 'Date, ETag, Retry-After, Saltern-Collection, Saltern-Format, Saltern-Iterations, Saltern-Views-Left, X-Request-Id'
    [[ -z $(header access-control-allow-credentials) ]] || fail "no credentials"
}
request GET /v1/service '' "${origin[@]}"
readable 200
request GET /v1/account '' "${origin[@]}"
readable 401
request GET /v1/service '' "${origin[@]}" --header "X-Long: $(printf 'x%.0s' {1..17000})"
readable 431
request GET /v1/service '' "${origin[@]}" --header 'Host: a b'
readable 400
request POST /v1/kdf '{"userid":' "${origin[@]}"
readable 400

scenario "other origins, pages of the server and routes of services have no such field"
request GET /v1/service '' --header 'Origin: https://other.example.com'
[[ -z $(header access-control-allow-origin) ]] || fail "no field for another origin"
expect_header vary Origin
for path in /s/0123456789012345678901 /.well-known/jwks.json /v1/tokens/inspect; do
    request GET "$path" '' "${origin[@]}"
    [[ -z $(header access-control-allow-origin) ]] || fail "no field at $path"
done
