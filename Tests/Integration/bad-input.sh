#!/usr/bin/env bash
# Rejected requests with their statuses and codes: the table of docs/api-guide.md, line by line.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

key=$(random_base64 32)
longest_userid=$(printf 'a%.0s' {1..254})

# login JSON-MEMBERS: a log-in with these.
login() { request POST /v1/sessions "{$1}"; }

# registration JSON-MEMBERS: a registration with these beside a userid and a key that are right.
registration() {
    request POST /v1/accounts "{\"userid\":\"$(unique ada)\",\"passwordKey\":\"$(random_base64 32)\",$1}"
}

scenario "a password is refused wherever it is, before anything else is said"
for path in /v1/kdf /v1/accounts /v1/sessions; do
    request POST $path '{"password":"S3kr3t!"}'
    expect_problem 422 password_refused
    request POST $path '{"nested":[{"password":null}]}'
    expect_problem 422 password_refused
done
[[ $body != *S3kr3t* ]] || fail "an error without the password"

scenario "what PBKDF2 cannot have returned is no password key"
for wrong in '' AAAA "$(random_base64 31)" "$(random_base64 33)" "${key%=}" "$key=" "${key%=}*" \
    "$(printf 'correct horse battery staple 123' | openssl base64)" \
    "$({ printf 'S3kr3t!'; head -c 25 /dev/zero; } | openssl base64)" \
    "$({ head -c 25 /dev/zero; printf 'S3kr3t!'; } | openssl base64)" \
    "$(head -c 32 /dev/zero | openssl base64)"; do
    login "\"userid\":\"ada\",\"passwordKey\":\"$wrong\""
    expect_problem 422 not_a_stretched_key
    expect_json .field passwordKey
done

scenario "a userid that is not canonical is refused, with the form that would be right"
for pair in 'Ada|ada' ' ada|ada' 'ada |ada' 'ＡＤＡ|ada' 'ﬁ|fi' 'Ångström|ångström' $'e\u0301|\u00e9'; do
    request POST /v1/kdf "{\"userid\":\"${pair%|*}\"}"
    expect_problem 422 userid_not_canonical
    expect_json .canonical "${pair#*|}"
    expect_json .field userid
done
for wrong in '' ' ' 'a\u0000b' 'a\nb' 'a\u0085b' "${longest_userid}a"; do
    request POST /v1/kdf "{\"userid\":\"$wrong\"}"
    expect_problem 422 invalid_userid
done
request POST /v1/kdf "{\"userid\":\"$longest_userid\"}"
expect_status 200

scenario "members that are missing, unknown or of the wrong type are named"
login '"userid":"ada"'
expect_problem 422 missing_member
expect_json .field passwordKey
login "\"userid\":\"ada\",\"passwordKey\":\"$key\",\"remember\":true"
expect_problem 422 unknown_member
expect_json .field remember
login "\"userid\":7,\"passwordKey\":\"$key\""
expect_problem 422 wrong_type
expect_json .field userid
registration '"kdf":{"iterations":600000,"salt":"x"}'
expect_problem 422 unknown_member
expect_json .field kdf.salt
registration '"kdf":{}'
expect_problem 422 missing_member
expect_json .field kdf.iterations
request POST /v1/kdf '["ada"]'
expect_problem 422 wrong_type

scenario "new parameters are not weaker than the minimum, nor absurd"
registration '"kdf":{"iterations":599999}'
expect_problem 422 out_of_range
expect_json .field kdf.iterations
expect_json .limit 600000
registration '"kdf":{"iterations":10000001}'
expect_problem 422 out_of_range
expect_json .limit 10000000
registration '"kdf":{"iterations":600000.5}'
expect_problem 422 wrong_type
registration '"kdf":{"iterations":"600000"}'
expect_problem 422 wrong_type

scenario "device names are short and printable"
for wrong in '' 'a\u0007b' "$(printf 'x%.0s' {1..65})"; do
    registration "\"kdf\":{\"iterations\":600000},\"device\":{\"name\":\"$wrong\"}"
    expect_problem 422 invalid_device_name
    expect_json .field device.name
done

scenario "a keyring is sealed, base64 and at most 64 KiB"
registration '"kdf":{"iterations":600000},"keyring":"not base64!"'
expect_problem 422 not_base64
registration "\"kdf\":{\"iterations\":600000},\"keyring\":\"$(printf 'these are my data keys' | openssl base64)\""
expect_problem 422 not_encrypted
registration "\"kdf\":{\"iterations\":600000},\"keyring\":\"$(random_base64 65537)\""
expect_problem 422 too_long
expect_json .limit 65536
registration "\"kdf\":{\"iterations\":600000},\"keyring\":\"$(random_base64 65536)\""
expect_status 201

scenario "JSON is strict"
request POST /v1/kdf '{"userid":"ada"'
expect_problem 400 malformed_json
request POST /v1/kdf '{"userid":"ada"} x'
expect_problem 400 malformed_json
request POST /v1/kdf '{"userid":"ada","userid":"eve"}'
expect_problem 400 duplicate_member
request POST /v1/kdf '{"userid":"ada","\u0075serid":"eve"}'
expect_problem 400 duplicate_member
request POST /v1/kdf '{"userid":"\ud800"}'
expect_problem 400 lone_surrogate
request POST /v1/kdf $'{"userid":"\xff"}'
expect_problem 400 not_utf8
request POST /v1/kdf "$(printf '[%.0s' {1..40})"
expect_problem 400 json_too_deep
request POST /v1/kdf '{"userid":1e999}'
expect_problem 400 number_out_of_range

scenario "bodies are JSON, plain, there when needed and absent when not"
request POST /v1/kdf '' --data 'userid=ada'
expect_problem 415 unsupported_media_type
expect_header accept application/json
request POST /v1/kdf '{"userid":"ada"}' --header 'Content-Encoding: gzip'
expect_problem 415 unsupported_content_encoding
request POST /v1/kdf
expect_problem 400 missing_body
request GET /v1/service '{"userid":"ada"}'
expect_problem 400 unexpected_body
request GET /v1/service '{"userid":"ada"}' --header 'Transfer-Encoding: chunked'
expect_problem 400 unexpected_body

scenario "a body is its content, however it is framed"
# Clients that stream frame a body as chunks before they know whether it has content (RFC 9112 §6.3).
chunked() { request "$1" "$2" '' --header 'Transfer-Encoding: chunked' --data-binary '' "${@:3}"; }
chunked GET /v1/service
expect_status 200
chunked POST /v1/kdf --header 'Content-Type: application/json'
expect_problem 400 missing_body
for type in '' ' text/plain'; do
    chunked POST /v1/kdf --header "Content-Type:$type"
    expect_problem 400 missing_body
    request POST /v1/kdf '' --header "Content-Type:$type" --header 'Content-Length: 0'
    expect_problem 400 missing_body
    request POST /v1/kdf '' --header "Content-Type:$type" --header 'Transfer-Encoding: chunked' --data-binary '{"userid":"ada"}'
    expect_problem 415 unsupported_media_type
done
request GET /v1/service '' --header 'Content-Length: 0' --header 'Content-Type: application/json'
expect_status 200

scenario "a media type is what it says, not how it is spelled"
for type in 'application/json;' 'application/json; charset=utf8' 'Application/JSON ; Charset="UTF-8"; version=1'; do
    request POST /v1/kdf '' --header "Content-Type: $type" --data-binary '{"userid":"ada"}'
    expect_status 200
done
request POST /v1/kdf '' --header 'Content-Type: application/json; charset=latin1' --data-binary '{"userid":"ada"}'
expect_problem 415 unsupported_media_type

scenario "bodies are not longer than the route takes, announced or not"
long="{\"userid\":\"$(printf 'a%.0s' {1..9000})\"}"
request POST /v1/kdf "$long"
expect_problem 413 body_too_large
expect_json .limit 8192
request POST /v1/kdf "$long" --header 'Transfer-Encoding: chunked'
expect_problem 413 body_too_large

scenario "paths and methods that do not exist"
for path in / /v1 /v1/ /v1/service/ /v2/service //v1/service /v1/items/a/b; do
    request GET "$path" '' --path-as-is
    expect_problem 404 not_found
done
request POST /v1/service '{}'
expect_problem 405 method_not_allowed
expect_header allow 'GET, HEAD'
request PATCH /v1/sessions '{}'
expect_problem 405 method_not_allowed
expect_header allow 'DELETE, GET, HEAD, POST'

scenario "query parameters are known, single and well-formed"
request GET '/v1/service?verbose=1'
expect_problem 400 unknown_parameter
expect_json .field verbose
register ada
for query in 'limit=0' 'limit=501' 'limit=ten' 'limit=01' 'page=x' 'page='; do
    request GET "/v1/items?$query"
    expect_problem 400 invalid_parameter
done
request GET '/v1/items?limit=1&limit=2'
expect_problem 400 duplicate_parameter
for query in 'limit' 'limit=%zz' 'limit=1+1' '=1'; do
    request GET "/v1/items?$query"
    expect_problem 400 invalid_query
done

scenario "an id is a UUID"
for id in 7 "$(uuid)0" '%7B' 'not-a-uuid'; do
    request GET "/v1/items/$id"
    expect_problem 400 invalid_parameter
    expect_json .field id
done

# item MEMBERS: a PUT with these.
item() { request PUT "/v1/items/$(uuid)" "{$1}" --header 'If-None-Match: *'; }

scenario "what is evidently not encrypted is refused"
for plain in 'Dear diary, today I bought salt and pepper.' "$(printf '%064d' 0)" '{"title":"Groceries","items":[]}'; do
    item "\"format\":\"opaque\",\"body\":\"$(printf '%s' "$plain" | openssl base64 -A)\""
    expect_problem 422 not_encrypted
    expect_json .field body
done
item "\"format\":\"opaque\",\"body\":\"$(head -c 200 /dev/zero | openssl base64 -A)\""
expect_problem 422 not_encrypted
item "\"format\":\"aes-256-gcm\",\"body\":\"$({ openssl rand 12; printf 'a real nonce and a real tag hide no plain text'; openssl rand 16; } | openssl base64 -A)\""
expect_problem 422 not_encrypted
item "\"format\":\"opaque\",\"title\":\"$(printf 'Dear diary, 1 May' | openssl base64 -A)\",\"body\":\"$(random_base64 80)\""
expect_problem 422 not_encrypted
expect_json .field title

scenario "what does not have the structure of its format is refused"
item "\"format\":\"rncryptor-v3\",\"body\":\"$({ printf '\002\000'; openssl rand 64; } | openssl base64 -A)\""
expect_problem 422 malformed_sealed_bytes
item "\"format\":\"rncryptor-v3\",\"body\":\"$({ printf '\003\000'; openssl rand 63; } | openssl base64 -A)\""
expect_problem 422 malformed_sealed_bytes
item "\"format\":\"rncryptor-v3\",\"body\":\"$({ printf '\003\001'; openssl rand 64; } | openssl base64 -A)\""
expect_problem 422 malformed_sealed_bytes
item "\"format\":\"aes-256-gcm\",\"body\":\"$(random_base64 27)\""
expect_problem 422 malformed_sealed_bytes
item "\"format\":\"aes-256-gcm-iv16\",\"body\":\"$(random_base64 31)\""
expect_problem 422 malformed_sealed_bytes
item '"format":"opaque","body":""'
expect_problem 422 malformed_sealed_bytes
item '"format":"opaque","body":"AAA"'
expect_problem 422 not_base64
item "\"format\":\"rot13\",\"body\":\"$(random_base64 80)\""
expect_problem 422 unknown_format
item "\"format\":\"opaque\",\"collection\":\"My Notes\",\"body\":\"$(random_base64 80)\""
expect_problem 422 invalid_collection
item "\"format\":\"opaque\",\"iterations\":0,\"body\":\"$(random_base64 80)\""
expect_problem 422 out_of_range
