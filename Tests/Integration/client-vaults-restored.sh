#!/usr/bin/env bash
# A backup is restored under a running server: the devices of a shared vault put back its log and its items, and a removed
# member stays removed.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client
start_own_server SALTERN_RATE_LIMITS=off
echo 'correct horse battery staple' >"$work/password"

for name in ada bob carol; do
    eval "$name() { device $name \"\$@\" </dev/null; }"
    device "$name" register --server "$SALTERN_TEST_URL" --userid "$(unique "$name")" --certificate "$certificate" \
        --device "$name" --password-file "$work/password"
    expect_status 0
done
# join NAME PERSON
join() {
    ada vault invite household --role writer --label "$2" --no-code --json
    expect_status 0
    json .link >"$work/link"
    device "$1" vault join --as "$2" --link-file "$work/link" --json </dev/null
    expect_status 0
}
# restore: the server stays up.
restore() {
    superuser 'ALTER DATABASE saltern ALLOW_CONNECTIONS false'
    superuser "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'saltern'" >/dev/null
    pg_restore --clean --create --exit-on-error --dbname "$(own_database_url postgres postgres)" "$work/backup"
    wait_until 180 on_every_loop is_ready || fail "the server to reply again"
    wait_until 180 grep --quiet '"event":"time_went_back"' "$own_home/run.log" || fail "the rollback in the log"
}

scenario "a backup is made, and afterwards a member is removed"
ada vault create household --as Ada
expect_status 0
join bob Bob
join carol Carol
device ada put --vault household --title list --json <<<'Buy salt.'
for name in ada bob carol; do "$name" sync; done
pg_dump --format custom --file "$work/backup" "$(own_database_url postgres saltern)"
ada vault remove household Bob
expect_status 0
device ada put --vault household --title secret --json <<<'Surprise party.'
ada sync
carol sync
carol get secret --vault household
[[ $body == 'Surprise party.' ]] || fail "the item before the restore"

scenario "after the restore, members change nothing before the owner's device has confirmed the log"
restore
carol vault leave household --yes --json
expect_error 69 vault_recovering

scenario "a member's device puts the removal back"
carol sync --json
bob sync --json
expect_json '[.vaults[].problems[].kind] | index("ended") != null' true

scenario "the owner's device ends the recovery, and sends the lost items again"
ada sync --json
expect_json '.vaults[0].error' null
ada sync --json
expect_json '.vaults[0].unsent' 0
carol sync
carol get secret --vault household
[[ $body == 'Surprise party.' ]] || fail "the item after the restore"
bob sync
bob list --vault household --json
expect_json '[.items[].title] | index("secret")' null
ada vault members household --json
expect_json '[.members[].name] | tostring' '["Ada","Carol"]'

scenario "a finding stays until it was seen, and new members can join"
carol vault list --json
expect_json '[.vaults[].problems[].kind] | tostring' '["rolledBack"]'
carol status --seen
carol vault list --json
expect_json '[.vaults[].problems[].kind] | tostring' '[]'
join bob Robert
bob sync
bob get secret --vault household
[[ $body == 'Surprise party.' ]] || fail "the item for a member that was invited again"
