#!/usr/bin/env bash
# Items: created, read, changed and deleted under preconditions, so that no change is ever lost.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# put PRECONDITION [BODY [MORE-MEMBERS]]: writes the item $id; the body is random bytes, which is what sealed bytes look like.
put() {
    content=${2:-$(random_base64 100)}
    request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$content\"${3:-}}" --header "$1"
}

register ada
id=$(uuid)

scenario "If-None-Match: * creates an item, and the ETag is its revision"
put 'If-None-Match: *' '' ',"collection":"notes","title":"'"$(random_base64 40)"'"'
expect_status 201
expect_json .id "$id"
expect_json .collection notes
expect_json .deleted false
revision=$(json .revision)
expect_header etag "\"$revision\""

scenario "what was stored comes back"
request GET "/v1/items/$id"
expect_status 200
expect_header etag "\"$revision\""
expect_json .body "$content"
expect_json .format opaque
expect_json .collection notes
expect_json '.title | length' 56

scenario "a client that has the revision is not sent it again"
request GET "/v1/items/$id" '' --header "If-None-Match: \"$revision\""
expect_status 304
expect_header etag "\"$revision\""
[[ -z $body ]] || fail "no body"
request GET "/v1/items/$id" '' --header "If-None-Match: \"$((revision + 1))\""
expect_status 200

scenario "creating what exists is refused, with what is there"
put 'If-None-Match: *'
expect_problem 412 precondition_failed
expect_json .current.revision "$revision"
expect_json .current.id "$id"
expect_header etag "\"$revision\""

scenario "If-Match with the revision that was read changes the item"
put "If-Match: \"$revision\""
expect_status 200
newer=$(json .revision)
((newer > revision)) || fail "a higher revision than $revision"

scenario "If-Match with an older revision changes nothing"
stored=$content
put "If-Match: \"$revision\""
expect_problem 412 precondition_failed
expect_json .current.revision "$newer"
expect_json .current.body "$stored"
request GET "/v1/items/$id"
expect_json .body "$stored"

scenario "a retry of what is already stored succeeds and changes nothing, whatever its precondition"
put "If-Match: \"$revision\"" "$stored"
expect_status 200
expect_json .revision "$newer"
put 'If-None-Match: *' "$stored"
expect_status 200
expect_json .revision "$newer"

scenario "If-Match: * overwrites whatever is there, and nothing that is not there"
put 'If-Match: *'
expect_status 200
known=$id
id=$(uuid)
put 'If-Match: *'
expect_problem 412 precondition_failed
expect_json .current null
id=$known

scenario "without a precondition nothing is written"
request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}"
expect_problem 428 precondition_required
request DELETE "/v1/items/$id"
expect_problem 428 precondition_required

scenario "tags that are not the item's, and weak ones, fail with the item as it is; two preconditions and what is no tag are refused"
for precondition in '"7", "8"' 'W/"7"' 'W/"3"' '"07"' '"x"' '"3-gzip"'; do
    put "If-Match: $precondition"
    expect_problem 412 precondition_failed
    expect_json .current.id "$id"
done
put 'If-Match: 7'
expect_problem 400 malformed_precondition
request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$(random_base64 100)\"}" \
    --header 'If-Match: *' --header 'If-None-Match: *'
expect_problem 400 malformed_precondition
put 'If-None-Match: "7"'
expect_problem 400 malformed_precondition

scenario "an id is the same in upper case, as Apple writes it"
request GET "/v1/items/${id^^}"
expect_status 200
expect_json .id "$id"

scenario "every registered format is stored as it is"
for format in aes-256-gcm aes-256-gcm-iv16; do
    id=$(uuid)
    sealed=$(random_base64 60)
    request PUT "/v1/items/$id" "{\"format\":\"$format\",\"body\":\"$sealed\",\"iterations\":600000}" --header 'If-None-Match: *'
    expect_status 201
    request GET "/v1/items/$id"
    expect_json .format "$format"
    expect_json .body "$sealed"
    expect_json .iterations 600000
done
id=$(uuid)
sealed=$({ printf '\003\000'; openssl rand 64; } | openssl base64 -A)
request PUT "/v1/items/$id" "{\"format\":\"rncryptor-v3\",\"body\":\"$sealed\"}" --header 'If-None-Match: *'
expect_status 201

scenario "base64 in lines, as older Apple encoders write it, is understood and comes back canonical"
id=$(uuid)
sealed=$(random_base64 200)
wrapped=$(fold --width 64 <<<"$sealed" | sed -z 's/\n/\\r\\n/g; s/\\r\\n$//')
request PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$wrapped\"}" --header 'If-None-Match: *'
expect_status 201
request GET "/v1/items/$id"
expect_json .body "$sealed"

scenario "a list of all items, in pages, has each of them once"
request GET /v1/items
expect_status 200
expect_json '.items | length' 5
expect_json 'has("nextPage")' false
all=$(json '[.items[].id] | sort | join(" ")')
seen=
page=
for _ in {1..5}; do
    request GET "/v1/items?limit=1${page:+&page=$page}"
    expect_json '.items | length' 1
    seen+="$(json '.items[0].id') "
    page=$(json '.nextPage // ""')
done
[[ -z $page ]] || fail "no page after the last"
[[ $(tr ' ' '\n' <<<"${seen% }" | sort | paste --serial --delimiters ' ') == "$all" ]] || fail "the same items as in one page: $all, which are $seen"

scenario "a deleted item is gone, and its number of changes goes on"
id=$known
request GET "/v1/items/$id"
revision=$(json .revision)
request DELETE "/v1/items/$id" '' --header 'If-Match: "1000000"'
expect_problem 412 precondition_failed
request DELETE "/v1/items/$id" '' --header "If-Match: \"$revision\""
expect_status 200
expect_json .deleted true
expect_json 'has("body")' false
(($(json .revision) > revision)) || fail "a higher revision than $revision"
request GET "/v1/items/$id"
expect_problem 404 not_found
request DELETE "/v1/items/$id" '' --header 'If-Match: *'
expect_problem 404 not_found
put 'If-Match: *'
expect_problem 412 precondition_failed
expect_json .current.deleted true
request GET /v1/items
expect_json '.items | length' 4

scenario "the same id can be used again"
put 'If-None-Match: *'
expect_status 201

scenario "usage counts items and sealed bytes"
request GET /v1/account
expect_json .usage.items 5
expect_json .usage.bytes $((100 + 60 + 60 + 66 + 200))

scenario "an item that is larger than the plan allows is refused, and the limit is named"
id=$(uuid)
allowed=$(json .limits.itemBytes)
put 'If-None-Match: *' "$(random_base64 $((allowed + 1)))"
expect_problem 403 quota_exceeded
expect_json .limit itemBytes
expect_json .allowed "$allowed"
expect_json .used $((allowed + 1))
put 'If-None-Match: *' "$(random_base64 "$allowed")"
expect_status 201

scenario "nobody sees, changes or deletes what belongs to somebody else"
stored=$content
ada=$token
register eve
request GET "/v1/items/$id"
expect_problem 404 not_found
request DELETE "/v1/items/$id" '' --header 'If-Match: *'
expect_problem 404 not_found
request GET /v1/items
expect_json '.items | length' 0
put 'If-None-Match: *'
expect_status 201
token=$ada
request GET "/v1/items/$id"
expect_json .body "$stored"
