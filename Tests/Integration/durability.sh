#!/usr/bin/env bash
# Every acknowledged write is stored, however the server ends; and scripts/run uses again what it created in the first run.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

pin_of_server() { saltern certificate pins | sed -n 's/^active *//p'; }

# Writes items one after another, and notes each that was acknowledged, until the server is gone.
write_until_it_is_gone() {
    local id content
    while :; do
        id=$(uuid)
        content=$(random_base64 200)
        request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$content\"}" --header 'If-None-Match: *' 2>/dev/null || return 0
        # A repeated write may have been stored the first time.
        [[ $status == 201 || $repeated$status == PUT200 ]] || return 0
        printf '%s %s\n' "$id" "$content" >>"$work/acknowledged"
    done
}

acknowledged_at_least() { (($(wc -l <"$work/acknowledged") >= $1)); }

start_own_server
pin=$(pin_of_server)
register ada
: >"$work/acknowledged"

scenario "kill -9 in the middle of writing loses nothing that was acknowledged"
write_until_it_is_gone &
writer=$!
wait_until 180 acknowledged_at_least 30 || fail "30 items to be written"
kill -KILL "$(own_server_process)"
wait "$writer"
result=0
wait_for_own_server 180 || result=$?
((result != 0)) || fail "scripts/run to say that its server was killed"

start_own_server
while read -r id content; do
    request GET "/v1/items/$id"
    expect_status 200
    expect_json .body "$content"
done <"$work/acknowledged"
written=$(wc -l <"$work/acknowledged")
request GET '/v1/account'
stored=$(json .usage.items)
# The reply of the last one may have been lost with the server.
((stored == written || stored == written + 1)) || fail "$written items, or one more, which are $stored"

scenario "the second start keeps data, sessions, certificate and pin"
[[ $(pin_of_server) == "$pin" ]] || fail "the pin of the first start, $pin"
log_in

scenario "one folder is served by one scripts/run at a time"
result=0
env --unset SALTERN_TEST_URL --unset SALTERN_TEST_HOME --unset SALTERN_TEST_EXECUTABLE SALTERN_HOME="$own_home" \
    "$repository/scripts/run" --executable "$executable" >"$work/second" 2>&1 </dev/null || result=$?
((result != 0)) || fail "the second scripts/run to refuse"
grep --quiet 'another scripts/run' "$work/second" || fail "it to say why: $(cat "$work/second")"
request GET /v1/account
expect_status 200

scenario "a clean end is a clean end"
stop_own_server || fail "exit status 0"
