#!/usr/bin/env bash
# Registration by invitation: one invite, one account.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server SALTERN_REGISTRATION=invite SALTERN_RATE_LIMITS=off

# registration INVITE [USERID]: the body of one; the key is always another.
registration() {
    printf '{"userid":"%s","passwordKey":"%s","kdf":{"iterations":600000}%s}' \
        "${2:-$(unique guest)}" "$(random_base64 32)" "${1:+,\"invite\":\"$1\"}"
}

# invite ARGUMENT…: the code of a new invite.
invite() { saltern invite create --json "$@" | jq --raw-output '.invites[].code'; }

scenario "nobody registers without an invite, and nobody learns whether a userid is taken"
request GET /v1/service
expect_json .registration invite
request POST /v1/accounts "$(registration '')"
expect_problem 403 invite_required
expect_json .field invite

scenario "an invite opens one account, with its plan"
code=$(invite --plan pro --note 'for Ada' --actor grace)
[[ $code =~ ^sli_[A-Za-z0-9_-]{32}$ ]] || fail "a code: $code"
ada=$(unique ada)
body_of_ada=$(registration "$code" "$ada")
request POST /v1/accounts "$body_of_ada"
expect_status 201
token=$(json .session.token)
request GET /v1/account
expect_json .plan pro
token=
request POST /v1/accounts "$(registration "$code")"
expect_problem 403 invalid_invite

scenario "who sends the same registration again is told that it has happened"
request POST /v1/accounts "$body_of_ada"
expect_problem 409 userid_taken

scenario "a registration that fails leaves the invite as good as it was"
code=$(invite)
request POST /v1/accounts "$(registration "$code" "$ada")"
expect_problem 409 userid_taken
request POST /v1/accounts "$(registration "$code" Ada@Example.org)"
expect_problem 422 userid_not_canonical
request POST /v1/accounts "$(registration "$code")"
expect_status 201

scenario "fifty people with one invite: one gets in"
code=$(invite)
for number in {1..50}; do
    registration "$code" >"$work/body-$number"
    printf 'next\nurl = "%s/v1/accounts"\ndata-binary = "@%s"\noutput = "%s"\nwrite-out = "%%{http_code}\\n"\n' \
        "$SALTERN_TEST_URL" "$work/body-$number" "$work/reply-$number"
    printf 'header = "Content-Type: application/json"\ncacert = "%s"\nnoproxy = "*"\nsilent\nmax-time = 180\n' "$certificate"
done | tail --lines +2 >"$work/fifty"
# A client that receives a retry time, because earlier requests took too long, retries.
curl --parallel --parallel-immediate --parallel-max 50 --retry 30 --config "$work/fifty" --no-progress-meter >"$work/statuses"
[[ $(grep --count '^201$' "$work/statuses") == 1 ]] || fail "one account: $(sort "$work/statuses" | uniq --count)"
[[ $(grep --count '^403$' "$work/statuses") == 49 ]] || fail "49 refusals: $(sort "$work/statuses" | uniq --count)"
[[ $(cat "$work"/reply-* | grep --only-matching invalid_invite | wc -l) -ge 49 ]] || fail "invalid_invite 49 times"

scenario "revoked, expired and unknown invites are told the same"
code=$(invite)
id=$(saltern invite list --json | jq --raw-output '.invites[0].id')
saltern invite revoke "$id" >/dev/null
request POST /v1/accounts "$(registration "$code")"
expect_problem 403 invalid_invite
revoked=$(json 'del(.requestId)')
code=$(invite)
query "UPDATE saltern.invites SET expires_at = now() WHERE used_at IS NULL"
request POST /v1/accounts "$(registration "$code")"
[[ $(json 'del(.requestId)') == "$revoked" ]] || fail "the same for an expired one: $revoked"
request POST /v1/accounts "$(registration "sli_$(openssl rand -base64 24 | tr '+/' '-_')")"
[[ $(json 'del(.requestId)') == "$revoked" ]] || fail "the same for an unknown one: $revoked"

scenario "the list says what became of them, and shows no code"
list=$(saltern invite list --all --json)
for state in used revoked expired; do
    [[ $(jq "[.invites[].state] | any(. == \"$state\")" <<<"$list") == true ]] || fail "one that is $state: $list"
done
if grep --quiet sli_ <<<"$list"; then fail "no code in the list"; fi
[[ $(saltern audit list --json | jq --raw-output '[.entries[] | select(.action == "invite_created")] | last.actor') == grace ]] ||
    fail "the audit log to say who made the first"

scenario "where registration is open an invite may come along, and where it is closed none helps"
code=$(invite --plan pro)
stop_own_server || fail "the server to end cleanly"
start_own_server SALTERN_REGISTRATION=closed SALTERN_RATE_LIMITS=off
request POST /v1/accounts "$(registration "$code")"
expect_problem 403 registration_closed
stop_own_server || fail "the server to end cleanly"
start_own_server SALTERN_REGISTRATION=open SALTERN_RATE_LIMITS=off
request POST /v1/accounts "$(registration '')"
expect_status 201
request POST /v1/accounts "$(registration "$code")"
expect_status 201
token=$(json .session.token)
request GET /v1/account
expect_json .plan pro
token=
request POST /v1/accounts "$(registration "$code")"
expect_problem 403 invalid_invite
