#!/usr/bin/env bash
# Items as bytes: the server returns the stored bytes in every requested form.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# put_bytes PATH FILE [CURL-ARGUMENT…]
put_bytes() {
    local path=$1 file=$2
    shift 2
    request PUT "$path" '' --header 'Content-Type: application/octet-stream' --data-binary "@$file" "$@"
}

register ada
sealed=$work/sealed
openssl rand -out "$sealed" 900000
item=/v1/items/$(uuid)

scenario "sealed bytes are stored without base64, with their other members in the URL"
title=$(openssl rand -base64 60 | tr -d '\n' | tr '+/' '-_')
put_bytes "$item?format=aes-256-gcm&collection=photos&iterations=700000&title=$title" "$sealed" --header 'If-None-Match: *'
expect_status 201
expect_header etag '"1"'
expect_json .collection photos

scenario "the path of the body alone takes and gives the same, whatever the client accepts"
put_bytes "$item/body?format=aes-256-gcm&collection=photos&iterations=700000&title=$title" "$sealed" --header 'If-Match: "1"'
expect_status 200
expect_header etag '"1"'
request GET "$item/body" '' --header 'Accept: application/json' --output "$work/body"
cmp --silent "$work/body" "$sealed" || fail "the bytes that were sent"

scenario "they come back byte for byte"
request GET "$item" '' --header 'Accept: application/octet-stream'
expect_status 200
expect_header content-type application/octet-stream
expect_header content-length 900000
expect_header etag '"1"'
expect_header vary Accept
expect_header saltern-format aes-256-gcm
expect_header saltern-collection photos
expect_header saltern-iterations 700000
cmp -- "$sealed" "$work/body"

scenario "as JSON they are the same"
request GET "$item"
expect_status 200
json .body | base64 --decode | cmp -- - "$sealed"
expect_json .title "$(tr -- '-_' '+/' <<<"$title")"

scenario "HEAD tells their length, and who has them gets none"
request GET "$item" '' --header 'Accept: application/octet-stream' --head
expect_status 200
expect_header content-length 900000
request GET "$item" '' --header 'Accept: application/octet-stream' --header 'If-None-Match: "1"'
expect_status 304

scenario "bytes are held to the same rules"
put_bytes "$item?format=aes-256-gcm" "$sealed"
expect_problem 428 precondition_required
put_bytes "$item?format=aes-256-gcm" "$sealed" --header 'If-Match: "2"'
expect_problem 412 precondition_failed
put_bytes "$item" "$sealed" --header 'If-Match: "1"'
expect_problem 400 missing_parameter
printf 'A letter that nobody has sealed, long enough to be told from noise.' >"$work/plain"
put_bytes "$item?format=opaque" "$work/plain" --header 'If-Match: "1"'
expect_problem 422 not_encrypted
openssl rand -out "$work/large" 1048577
put_bytes "$item?format=aes-256-gcm" "$work/large" --header 'If-Match: "1"'
expect_problem 403 quota_exceeded
openssl rand -out "$work/larger" 16777217
put_bytes "$item?format=aes-256-gcm" "$work/larger" --header 'If-Match: "1"'
expect_problem 413 body_too_large
expect_json .limit 16777216

scenario "a form that an item does not have is refused"
request GET "$item" '' --header 'Accept: text/html'
expect_problem 406 not_acceptable
