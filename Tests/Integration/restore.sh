#!/usr/bin/env bash
# A backup is restored, twice, while the server runs: data of two devices from the lost time is not confused with present data.
# (restored.sh tests the command for operators.)
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server

# The server stays up, unlike in the handbook. The result must still be right.
restore() {
    superuser 'ALTER DATABASE saltern ALLOW_CONNECTIONS false'
    superuser "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'saltern'" >/dev/null
    pg_restore --clean --create --exit-on-error --dbname "$(own_database_url postgres postgres)" "$work/backup"
    wait_until 180 on_every_loop item_is_read || fail "the item to be read again"
}

# expect_nothing_old TAG CURSOR…
expect_nothing_old() {
    local tag=$1 cursor
    shift
    for cursor in "$@"; do
        request GET "/v1/changes?since=$cursor"
        expect_problem 410 cursor_expired
    done
    request GET "/v1/items/$id" '' --header "If-None-Match: $tag"
    expect_status 200
    expect_json .body "$content"
    replace_item "$tag"
    expect_problem 412 precondition_failed
}

scenario "a phone has everything, and then a backup is made"
register ada
create_item
request GET /v1/changes
expect_json .revisionBase 0
phone_cursor=$(json .cursor)
pg_dump --format custom --file "$work/backup" "$(own_database_url postgres saltern)"

scenario "a laptop changes the item, and that time is lost"
replace_item '"1"'
expect_status 200
expect_header etag '"2"'
request GET /v1/changes
laptop_cursor=$(json .cursor)

scenario "after the restore the cursors have expired, and the tag of the lost time matches nothing"
restore
# Another loop may have answered before the one that noticed has written it down.
wait_until 180 grep --quiet '"event":"time_went_back"' "$own_home/run.log" || fail "the log to tell that time went back"
expect_nothing_old '"2"' "$phone_cursor" "$laptop_cursor"
request GET /v1/changes
expect_json '.changes | length' 1
base=$(json .revisionBase)
((base > 1 << 50 && base < 1 << 53)) || fail "a base that JSON carries, not $base"
request GET /v1/account
expect_json .revisionBase "$base"

scenario "the tag of what the backup has still stands for it, and changes count on above the base"
replace_item '"1"'
expect_status 200
expect_json .revision "$((base + 1))"
first_tag=$(header etag)
request GET /v1/changes
first_cursor=$(json .cursor)

scenario "the same backup is restored once more, and the numbers are others again"
restore
expect_nothing_old "$first_tag" "$phone_cursor" "$laptop_cursor" "$first_cursor"
replace_item '"1"'
expect_status 200
(($(json .revision) > base + 1)) || fail "a revision above all others"
