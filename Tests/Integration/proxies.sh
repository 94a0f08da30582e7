#!/usr/bin/env bash
# The handbook's words for proxies, in real ones: an nginx that ends TLS, one that keeps ids of shares out of its logs, and an
# HAProxy that does, beside one that passes TLS through.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/packages.sh
source "$repository/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"

ensure_packages nginx-light haproxy
PATH=$PATH:/usr/sbin
proxy_pid=
port=$(free_port)
# Where it ends TLS the certificate is the proxy's.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$work/api.key" -out "$work/api.pem" 2>"$work/made"

# shellcheck disable=SC2317  # the trap calls it
end() {
    local result=$?
    stop_proxy
    (exit "$result") || finish
    finish
}
trap end EXIT

# start_proxy COMMAND…
start_proxy() {
    setpriv --pdeathsig TERM "$@" </dev/null >"$work/proxy" 2>&1 &
    proxy_pid=$!
    wait_until 180 listens || fail "the proxy to listen: $(<"$work/proxy")"
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

stop_proxy() {
    [[ -z $proxy_pid ]] || end_process "$proxy_pid" TERM 10
    proxy_pid=
}

# through ADDRESS: what follows goes from this address, through the proxy; with the proxy's certificate.
through() {
    SALTERN_TEST_URL=https://localhost:$port
    certificate=${2:-$work/api.pem}
    from=$1
}
from=127.0.0.1
ask() { request "$1" "$2" "${3:-}" --interface "$from" --resolve "localhost:$port:127.0.0.1" "${@:4}"; }

# start_nginx: with the handbook's server; the location for shares has what the other has.
start_nginx() {
    mkdir --parents -- "$work/nginx"
    handbook_block 'Behind a proxy nginx 1' >"$work/server"
    sed -n '/^    location/,/^    }/p' "$work/server" | sed '1d;$d' >"$work/other"
    grep --quiet proxy_pass "$work/other" || fail "a location that passes on"
    handbook_block 'Shares nginx 1' | sed -e "/# … and what the other location has/{r $work/other" -e 'd}' >"$work/shares"
    {
        printf '%s\n' 'daemon off;' 'master_process off;' "pid $work/nginx/pid;" "error_log $work/nginx/errors;" 'events {}' 'http {'
        printf 'access_log %s;\n' "$work/nginx/access"
        local each
        for each in client_body proxy fastcgi uwsgi scgi; do printf '%s_temp_path %s;\n' "$each" "$work/nginx"; done
        sed -e '$d' -e "s|listen 443|listen 127.0.0.1:$port|; s|api.example.org|localhost|; s|/etc/nginx|$work|
            s|127.0.0.1:8443|127.0.0.1:$own_port|; s|/var/lib/saltern|$own_home|" "$work/server"
        sed "s|api.example.org|localhost|; s|127.0.0.1:8443|127.0.0.1:$own_port|; s|/var/lib/saltern|$own_home|" "$work/shares"
        echo '}'
        echo '}'
    } >"$work/nginx/configuration"
    nginx -t -q -c "$work/nginx/configuration" 2>"$work/proxy" || fail "nginx to take it: $(<"$work/proxy")"
    start_proxy nginx -c "$work/nginx/configuration"
}

share_of_mine() {
    ask POST /v1/shares \
        "{\"format\":\"aes-256-gcm\",\"salt\":\"$(random_base64 16)\",\"iterations\":600000,\"sealed\":\"$(random_base64 100)\"}"
    expect_status 201
    share=$(json .id)
}

scenario "nginx ends TLS, and takes as much as the server does"
start_own_server SALTERN_TRUSTED_PROXIES=127.0.0.1 SALTERN_RATE_LIMITS=lookup=3/0.01
start_nginx
through 127.0.0.1
ask GET /v1/health/ready
expect_status 200
userid=$(unique ada)
ask POST /v1/accounts "{\"userid\":\"$userid\",\"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":600000}}"
expect_status 201
token=$(json .session.token)
id=$(uuid)
ask PUT "/v1/items/$id" "{\"format\":\"opaque\",\"body\":\"$(random_base64 1400000)\"}" --header 'If-None-Match: *'
# Of a plan whose items are smaller: the server has read it, and nginx has not refused it.
[[ $status == 201 || $(json .code) == quota_exceeded ]] || fail "1.9 MB to be taken"

scenario "the server knows from where people come, and not from what they say"
own=$token token=
for each in 1 2 3; do
    through 127.0.0.2
    ask POST /v1/kdf '{"userid":"ada"}' --header "X-Forwarded-For: 203.0.113.$each"
    expect_status 200
done
ask POST /v1/kdf '{"userid":"ada"}' --header 'X-Forwarded-For: 203.0.113.4'
expect_problem 429 rate_limited
through 127.0.0.3
ask POST /v1/kdf '{"userid":"ada"}'
expect_status 200
token=$own

scenario "nginx writes no id of a share into its logs, also when the server is away"
share_of_mine
ask GET "/v1/shares/$share"
expect_status 200
ask GET "/s/$share"
expect_status 200
end_process "$(own_server_process)" TERM 40
ask GET "/v1/shares/$share"
expect_status 502
ask GET /v1/service
expect_status 502
grep --quiet /v1/service "$work/nginx/access" || fail "the access log to be on"
grep --quiet /v1/service "$work/nginx/errors" || fail "the error log to be on"
if grep --quiet --recursive "$share" "$work/nginx" "$work/proxy"; then fail "no id of a share in nginx's logs"; fi
stop_proxy
stop_own_server || true

scenario "HAProxy ends TLS, and writes no id of a share into its log"
start_own_server
token=$own
cat "$work/api.pem" "$work/api.key" >"$work/both.pem"
passed=$(free_port)
{
    printf '%s\n' global '    log stdout format raw local0' defaults '    log global' '    timeout connect 5s' \
        '    timeout client 30s' '    timeout server 30s'
    printf '%s\n' 'frontend ends' '    mode http' '    option httplog' "    bind 127.0.0.1:$port ssl crt $work/both.pem" \
        "    $(handbook_spans | grep '^http-request set-log-level')" '    default_backend ends'
    printf '%s\n' 'backend ends' '    mode http' \
        "    server saltern 127.0.0.1:$own_port ssl verify required ca-file $own_home/tls/certificate.pem sni str(localhost) verifyhost localhost"
    printf '%s\n' 'listen passes' '    mode tcp' '    option tcplog' "    bind 127.0.0.1:$passed" \
        "    server saltern 127.0.0.1:$own_port"
} >"$work/haproxy"
haproxy -c -q -f "$work/haproxy" >"$work/proxy" 2>&1 || fail "HAProxy to take it: $(<"$work/proxy")"
start_proxy haproxy -db -f "$work/haproxy"
through 127.0.0.1
share_of_mine
ask GET "/v1/shares/$share"
expect_status 200
ask GET "/s/$share"
expect_status 200
ask GET /v1/service
expect_status 200
wait_until 180 grep --quiet /v1/service "$work/proxy" || fail "the log to be on"
if grep --quiet "$share" "$work/proxy"; then fail "no id of a share in HAProxy's log"; fi

scenario "HAProxy passes TLS through: the certificate, and the pin, are the server's"
port=$passed
through 127.0.0.1 "$own_home/tls/certificate.pem"
ask GET /v1/account
expect_status 200
stop_proxy
stop_own_server

scenario "HAProxy passes TLS through and names the client, by the PROXY protocol"
start_own_server SALTERN_PROXY_PROTOCOL=127.0.0.2 SALTERN_RATE_LIMITS=lookup=3/0.01
port=$(free_port)
handbook_block 'Behind a proxy haproxy 1' |
    sed "s|bind :443|bind 127.0.0.1:$port|; s|127.0.0.1:8443|127.0.0.1:$own_port|; s| check | check inter 100ms |" >"$work/haproxy"
haproxy -c -q -f "$work/haproxy" >"$work/proxy" 2>&1 || fail "HAProxy to take it: $(<"$work/proxy")"
start_proxy haproxy -db -f "$work/haproxy"
own=$token token=
for each in 1 2 3; do
    through 127.0.0.4 "$own_home/tls/certificate.pem"
    ask POST /v1/kdf '{"userid":"ada"}' --header "X-Forwarded-For: 203.0.113.$each"
    expect_status 200
done
ask POST /v1/kdf '{"userid":"ada"}'
expect_problem 429 rate_limited
through 127.0.0.3 "$own_home/tls/certificate.pem"
ask POST /v1/kdf '{"userid":"ada"}'
expect_status 200
token=$own

scenario "an X-Forwarded-For that nobody trusts is logged"
wait_until 180 grep --quiet '"event":"forwarded_for_ignored"' "$own_home/run.log" || fail "a line in the log"

scenario "others need no header, and cannot pretend to be the proxy"
port=$own_port
through 127.0.0.4 "$own_home/tls/certificate.pem"
ask GET /v1/service
expect_status 200
if curl --silent --noproxy '*' --max-time 20 --cacert "$certificate" --interface 127.0.0.4 --haproxy-protocol \
    "https://localhost:$own_port/v1/service" --resolve "localhost:$own_port:127.0.0.1" >"$work/body" 2>&1; then
    fail "a header from elsewhere to be refused"
fi
if curl --silent --noproxy '*' --max-time 20 --cacert "$certificate" --interface 127.0.0.2 \
    "https://localhost:$own_port/v1/service" --resolve "localhost:$own_port:127.0.0.1" >"$work/body" 2>&1; then
    fail "the proxy without its header to be refused"
fi
wait_until 180 grep --quiet '"event":"proxy_headers_refused"' "$own_home/run.log" || fail "a line in the log"
