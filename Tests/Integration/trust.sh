#!/usr/bin/env bash
# The server's identity and protocol: pins, TLS versions, and no reply without TLS.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

host_and_port=${SALTERN_TEST_URL#https://}
port=${host_and_port##*:}
pin=$(pin_of "$certificate")

# curl_status ARGUMENT…: curl's exit status for a request to the service.
curl_status() {
    local result=0
    curl --silent --noproxy '*' --max-time 180 --output "$work/reply" "$@" "$SALTERN_TEST_URL/v1/service" || result=$?
    printf '%s' "$result"
}

expect() { [[ $1 == "$2" ]] || fail "$3: $2, which is $1"; }

scenario "the pin is that of the key in use, and the service publishes it with the backup"
expect "$(curl_status --cacert "$certificate" --pinnedpubkey "$pin")" 0 "curl's status"
expect "$(jq --raw-output '.pins.active[0]' "$work/reply")" "$pin" "the published pin"
backup=$(jq --raw-output '.pins.backup[0]' "$work/reply")
[[ $backup == sha256//* && $backup != "$pin" ]] || fail "a backup pin that differs from the active one"

scenario "the pin alone is enough for clients that know no authority"
expect "$(curl_status --insecure --pinnedpubkey "$pin")" 0 "curl's status"

scenario "with a wrong pin there is no conversation"
wrong=sha256//$(openssl rand -base64 32)
expect "$(curl_status --cacert "$certificate" --pinnedpubkey "$wrong")" 90 "curl's status"
expect "$(curl_status --insecure --pinnedpubkey "$wrong")" 90 "curl's status"

scenario "one right pin among several will do"
expect "$(curl_status --cacert "$certificate" --pinnedpubkey "$wrong;$pin")" 0 "curl's status"

scenario "the certificate is not one of the public authorities'"
expect "$(curl_status)" 60 "curl's status"

scenario "TLS 1.3 is spoken, and TLS 1.2 is not"
expect "$(curl_status --cacert "$certificate" --tlsv1.3)" 0 "curl's status"
expect "$(curl_status --cacert "$certificate" --tls-max 1.2)" 35 "curl's status"

scenario "plain HTTP gets no answer in plain"
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /v1/service HTTP/1.1\r\nHost: localhost\r\n\r\n' >"$work/plain-request"
# The server may close before it has read everything.
cat -- "$work/plain-request" >&3 2>/dev/null || true
timeout 300 cat <&3 >"$work/plain" 2>/dev/null || [[ $? != 124 ]] || fail "the server to close the connection"
exec 3>&-
if LC_ALL=C grep --quiet --text 'HTTP\|saltern' "$work/plain"; then fail "no HTTP in plain: $(tr -d '\0' <"$work/plain")"; fi

scenario "the certificate is for this host and no other"
result=0
curl --silent --noproxy '*' --max-time 180 --output /dev/null --cacert "$certificate" \
    --connect-to "elsewhere.example:$port:127.0.0.1:$port" "https://elsewhere.example:$port/v1/service" || result=$?
expect "$result" 60 "curl's status"
