#!/usr/bin/env bash
# Two devices of one user: each follows the changes, nothing is lost, and deleted items can be restored.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# put ID REVISION: an operation that writes random sealed bytes; they are in $content.
put() {
    content=$(random_base64 100)
    operation="{\"op\":\"put\",\"id\":\"$1\",\"ifRevision\":$2,\"collection\":\"notes\",\"format\":\"opaque\",\"body\":\"$content\"}"
}

# batch OPERATION…
batch() {
    local IFS=,
    request POST /v1/items/batch "{\"operations\":[$*]}"
}

register ada
phone=$token
log_in
laptop=$token

scenario "the phone begins with nothing"
token=$phone
request GET /v1/changes
expect_status 200
expect_json '.changes | length' 0
expect_json .more false
phone_cursor=$(json .cursor)

scenario "it sends three notes in one batch, which take three revisions in their order"
ids=("$(uuid)" "$(uuid)" "$(uuid)")
operations=()
for id in "${ids[@]}"; do
    put "$id" 0
    operations+=("$operation")
done
batch "${operations[@]}"
expect_status 200
expect_json '[.results[].revision] | join(",")' 1,2,3
first=$body

scenario "a batch whose reply was lost is sent again, and answers the same"
batch "${operations[@]}"
expect_status 200
[[ $body == "$first" ]] || fail "the same reply"

scenario "the laptop fetches them, a page at a time"
token=$laptop
request GET '/v1/changes?limit=2'
expect_json '.changes | length' 2
expect_json .more true
request GET "/v1/changes?limit=2&since=$(json .cursor)"
expect_json '.changes | length' 1
expect_json '.changes[0].body' "$content"
expect_json .more false
laptop_cursor=$(json .cursor)

scenario "it changes one and deletes another"
put "${ids[0]}" 1
batch "$operation" "{\"op\":\"delete\",\"id\":\"${ids[1]}\",\"ifRevision\":2}"
expect_status 200
expect_json '[.results[].revision] | join(",")' 4,5

scenario "the phone's stale changes are refused together, and named one by one"
token=$phone
put "${ids[0]}" 1
stale=$operation
put "${ids[2]}" 3
batch "$stale" "$operation" "{\"op\":\"delete\",\"id\":\"${ids[1]}\",\"ifRevision\":2}"
expect_problem 409 batch_conflict
expect_json '.conflicts | length' 1
expect_json '.conflicts[0].index' 0
expect_json '.conflicts[0].id' "${ids[0]}"
expect_json '.conflicts[0].code' precondition_failed
expect_json '.conflicts[0].revision' 4

scenario "the phone fetches everything since it began: each item once, the tombstone without content"
request GET "/v1/changes?since=$phone_cursor"
expect_json '[.changes[].revision] | join(",")' 3,4,5
expect_json '.changes[2].deleted' true
expect_json '.changes[2] | has("body")' false
phone_cursor=$(json .cursor)

scenario "the phone restores the note, and the laptop gets it back"
request POST "/v1/items/${ids[1]}/restore" '' --header 'If-Match: "5"'
expect_status 200
expect_header etag '"6"'
restored=$(json .body)
token=$laptop
request GET "/v1/changes?since=$laptop_cursor"
expect_json '[.changes[].revision] | join(",")' 4,6
expect_json '.changes[1].body' "$restored"

scenario "a collection is listed without its sealed bytes"
request GET '/v1/items?collection=notes&fields=meta'
expect_json '.items | length' 3
expect_json '[.items[] | has("body")] | any' false
request GET '/v1/items?collection=other'
expect_json '.items | length' 0

scenario "a device that missed purged tombstones begins again"
request DELETE "/v1/items/${ids[2]}" '' --header 'If-Match: *'
expect_status 200
query "UPDATE saltern.items SET updated_at = '$(date --utc --date '91 days ago' --iso-8601=seconds)' WHERE account_id = '$account_id' AND deleted"
saltern purge >/dev/null
request GET "/v1/changes?since=$laptop_cursor"
expect_problem 410 cursor_expired
request GET /v1/changes
expect_json '[.changes[].revision] | join(",")' 4,6

scenario "usage is what is there"
request GET /v1/account
expect_json .usage.items 2
expect_json .usage.bytes 200

scenario "a malformed cursor is refused"
request GET '/v1/changes?since=AAAA'
expect_problem 400 malformed_cursor
