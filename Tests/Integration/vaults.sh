#!/usr/bin/env bash
# Shared vaults: two people, whose devices are Python and curl, found, invite, join, write, read and remove.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

ensure_python_tools

register ada
ada=$token
ada_key=$password_key
ada_userid=$userid
register bob
bob=$token

scenario "two people share a vault by a link, and one of them is removed"
: >"$work/stream"
curl --silent --no-buffer --noproxy '*' --max-time 600 --cacert "$certificate" --header "Authorization: Bearer $bob" \
    "$SALTERN_TEST_URL/v1/changes/stream" >"$work/stream" &
stream=$!
wait_until 180 grep --quiet '^event: change' "$work/stream" || fail "the stream to begin"
made=$(run_python "$repository/Tests/Integration/vaults.py" "$ada" "$bob" "$work/stream") || fail "the vault"
vault=${made% *}
link=${made#* }

scenario "the live stream has the vault, until the membership ends"
wait_until 180 grep --quiet '"ended":true' "$work/stream" || fail "the end in the stream: $(<"$work/stream")"
kill "$stream"
grep '^data: {"id"' "$work/stream" | sed 's/^data: //' >"$work/events"
[[ $(jq --slurp --raw-output 'map(.id) | unique | join(" ")' "$work/events") == "$vault" ]] || fail "events of one vault"
jq --exit-status --slurp 'length >= 2 and (.[0].head.number >= 3) and .[-1].ended' "$work/events" >"$work/held" ||
    fail "a position and the end: $(<"$work/events")"

scenario "the page of a link is the same for all, without script, and the log has no id"
token=
request GET "$link"
expect_status 200
expect_header content-type 'text/html; charset=utf-8'
[[ $body == *'saltern-client vault join'* && $body != *'<script'* ]] || fail "a page without script"
page=$body
request GET "/j/$(openssl rand -hex 11)?utm_source=mail"
[[ $body == "$page" ]] || fail "the same page"
request GET /v1/account
expect_problem 401 unauthenticated
if grep --fixed-strings "${link#/j/}" "$SALTERN_TEST_HOME/run.log"; then fail "no id of an invitation in the log"; fi

scenario "an administrator sees numbers, and sets limits"
saltern account show "$ada_userid" --json >"$work/account"
[[ $(jq '.usage.vaults, .usage.memberships' "$work/account" | paste --serial) == $'1\t1' ]] || fail "one vault"
plan=few-$(openssl rand -hex 6)
saltern plan set "$plan" --create --vaults 1 --memberships 2 --vault-members 2 --vault-items 5 --vault-bytes 100000 --json >"$work/plan"
[[ $(jq .limits.vaultItems "$work/plan") == 5 ]] || fail "the limits of the plan"
saltern account set-plan "$ada_userid" "$plan" >"$work/given"
token=$ada
request GET "/v1/vaults/$vault"
expect_json .limits.items 5

scenario "an export has the owner's vault, and the account is deleted with it or not at all"
request POST /v1/account/export "{\"currentPasswordKey\":\"$ada_key\"}"
expect_status 200
[[ $(jq --raw-output 'select(.type == "end") | .counts | [.vault, .vaultMember, .vaultEntry, .vaultItem] | @csv' <<<"$body") == 1,1,4,3 ]] ||
    fail "the vault's lines: $(tail -n 1 <<<"$body")"
request DELETE /v1/account "{\"currentPasswordKey\":\"$ada_key\"}"
expect_problem 409 owns_vaults
request DELETE /v1/account "{\"currentPasswordKey\":\"$ada_key\",\"vaults\":\"delete\"}"
expect_status 204
token=$bob
request GET "/v1/vaults"
expect_json '.vaults | length' 0
