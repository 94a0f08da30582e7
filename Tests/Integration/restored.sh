#!/usr/bin/env bash
# The command for operators after a database rollback, and a database whose restore is not finished.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server
register ada
create_item

# Two devices of a new account send the requests of docs/api-guide.md; a reply a line.
# shellcheck disable=SC2016,SC2034  # the block reads the variables; backquotes are those of the document
two_devices() (
    register two
    phone=$token
    log_in
    laptop=$token body=$(random_base64 100) other=$(random_base64 100)
    sed -n '/^### Two devices, with curl/,/^## /p' "$repository/docs/api-guide.md" | sed -n '/^```bash/,/^```$/p' |
        sed "/^\`\`\`/d; s|^server=.*|server=$SALTERN_TEST_URL|; s|tls/certificate.pem|$certificate|g" >"$work/block"
    (($(wc --lines <"$work/block") > 20)) || fail "the block of docs/api-guide.md"
    # shellcheck source=/dev/null
    source "$work/block"
)
# what_is_said: the replies that docs/api-guide.md shows, a pattern a line.
what_is_said() { sed -n 's/^# {/{/p' "$work/block" | sed 's/[].*[]/\\&/g; s/…/.*/g'; }

scenario "two devices, as docs/api-guide.md types them"
two_devices >"$work/replies"
paste --delimiters '\n' <(what_is_said) "$work/replies" | while read -r pattern && read -r reply; do
    grep --quiet --line-regexp -- "$pattern" <<<"$reply" || fail "$pattern, not $reply"
done
[[ $(what_is_said | wc --lines) == 6 && $(wc --lines <"$work/replies") == 6 ]] || fail "six replies: $(<"$work/replies")"

scenario "what the server cannot notice is told by hand: every device lists everything once"
request GET /v1/changes
cursor=$(json .cursor)
said=$(saltern restored 2>"$work/notice")
base=${said##* }
[[ $said == "revisions continue above $base" ]] || fail "the base, not: $said"
is_on_cluster || grep --quiet 'servers are connected to the database: [0-9]* of saltern_app' "$work/notice" || fail "a notice: $(<"$work/notice")"
request GET "/v1/changes?since=$cursor"
expect_problem 410 cursor_expired
request GET /v1/changes
expect_json .revisionBase "$base"
grep --quiet database_restored <<<"$(saltern audit list)" || fail "the audit log to have it"

scenario "two devices of an account from afterwards are as docs/api-guide.md types them, with other figures"
two_devices >"$work/replies"
! grep '"code"' "$work/replies" | grep --invert-match '"code":"batch_conflict"' || fail "no other refusal: $(<"$work/replies")"
[[ $(tail -n 1 "$work/replies") == '{"changes":[{"id":'*"\"revisionBase\":$base}" ]] || fail "the change: $(<"$work/replies")"

scenario "and all sessions end"
said=$(saltern restored --end-sessions)
[[ $said == *"5 sessions have ended"* ]] || fail "the session to end: $said"
request GET /v1/account
expect_problem 401 unauthenticated
log_in
item_is_read || fail "the item to be there"

scenario "a server that runs does not use a database that is being restored, and goes on by itself when it has come back"
away() { once=yes request GET /v1/health/ready && [[ $status == 503 ]]; }
query 'CREATE SCHEMA saltern_restoring'
wait_until 180 away || fail "the server not to be ready"
expect_problem 503 database_unavailable
for _ in {1..5}; do
    once=yes request GET "/v1/items/$id"
    expect_problem 503 database_unavailable
done
grep --quiet 'a restore of the database is not finished' "$own_home/run.log" || fail "the log to say why"
query 'DROP SCHEMA saltern_restoring'
wait_until 180 on_every_loop item_is_read || fail "the item to be there"
