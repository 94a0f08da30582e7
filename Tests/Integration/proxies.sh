#!/usr/bin/env bash
# The handbook's configuration of proxies in real ones: an nginx and an HAProxy that end TLS and keep ids of shares out of their
# logs, beside an HAProxy that passes TLS through. A live stream, large bodies and a renewal of the server's certificate go
# through both.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/packages.sh
source "$repository/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"

ensure_packages nginx-light haproxy iproute2
PATH=$PATH:/usr/sbin
proxy_pid=
stream_pid=
port=$(free_port)
# Where it ends TLS the certificate is the proxy's.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$work/api.key" -out "$work/api.pem" 2>"$work/made"

at_end=(stop_proxy)

# start_proxy COMMAND…
start_proxy() {
    setpriv --pdeathsig TERM "$@" </dev/null >"$work/proxy" 2>&1 &
    proxy_pid=$!
    wait_until 180 listens || fail "the proxy to listen: $(<"$work/proxy")"
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

stop_proxy() {
    [[ -z $proxy_pid ]] || end_process "$proxy_pid" TERM 60
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

# watch_changes: opens the live stream through the proxy in the background; what it delivers goes to $work/events.
watch_changes() {
    : >"$work/events"
    setpriv --pdeathsig TERM curl --silent --show-error --no-buffer --noproxy '*' --max-time 600 --cacert "$certificate" \
        --resolve "localhost:$port:127.0.0.1" --header "Authorization: Bearer $token" \
        "$SALTERN_TEST_URL/v1/changes/stream" >"$work/events" 2>"$work/stream-errors" &
    stream_pid=$!
}

# is_delivered LINE
is_delivered() { grep --quiet --fixed-strings --line-regexp "$1" "$work/events"; }

# expect_delivered LINE: far before a proxy's buffer is full with what keeps the stream alive.
expect_delivered() {
    wait_until 180 is_delivered "$1" || fail "the stream to deliver $1 and not: $(<"$work/events") $(<"$work/stream-errors")"
}

# put_item [BYTES]: a new item through the proxy.
put_item() {
    ask PUT "/v1/items/$(uuid)" "{\"format\":\"opaque\",\"body\":\"$(random_base64 "${1:-100}")\"}" --header 'If-None-Match: *'
}

expect_stream_and_large_body() {
    watch_changes
    ask GET /v1/account
    expect_delivered 'event: change'
    put_item
    expect_status 201
    expect_delivered "data: {\"revision\":$(json .revision)}"
    put_item
    expect_status 201
    expect_delivered "data: {\"revision\":$(json .revision)}"
    kill "$stream_pid"
    wait "$stream_pid" || true
    put_item 1400000
    # Of a plan whose items are smaller: the server has read it, and the proxy has not refused it.
    [[ $status == 201 || $(json .code) == quota_exceeded ]] || fail "1.9 MB to be taken"
}

# certificate_shown: what the server itself shows.
certificate_shown() {
    openssl s_client -connect "127.0.0.1:$own_port" -servername localhost </dev/null 2>/dev/null | openssl x509 -noout -serial
}

is_renewed() { [[ $(certificate_shown) != "$1" ]]; }

# accept_no_more PROCESS…: they may still serve connections that they accepted before.
accept_no_more() {
    local each listeners
    listeners=$(ss --listening --tcp --numeric --processes "sport = :$port")
    for each in "$@"; do [[ $listeners != *"pid=$each,"* ]] || return 1; done
}

# renew_behind NAME FOLDER: the commands of the handbook, with a proxy whose files are in the folder.
renew_behind() {
    local before workers
    before=$(certificate_shown)
    mapfile -t workers < <(pgrep --parent "$proxy_pid")
    if accept_no_more "${workers[@]}"; then fail "the proxy's workers to accept connections"; fi
    handbook_block 'Renew the certificate behind a proxy 1' | sed "s|/var/lib/saltern|$own_home|; s|/etc/nginx|$2|; s|reload nginx|reload $1|" >"$work/typed"
    while read -r line; do
        case $line in
            'saltern-admin certificate renew') saltern certificate renew >"$work/renewed" ;;
            'cp '*) eval "$line" ;;
            'systemctl reload saltern')
                kill -HUP "$(own_server_process)"
                wait_until 180 is_renewed "$before" || fail "the server to show its new certificate"
                ;;
            'systemctl reload nginx') kill -HUP "$proxy_pid" ;;
            'systemctl reload haproxy') kill -USR2 "$proxy_pid" ;;
            *) fail "a line of the handbook that this test knows, not $line" ;;
        esac
    done <"$work/typed"
    is_renewed "$before" || fail "the server to show its new certificate"
    # A reload returns before the workers with the old certificate stop accepting connections.
    wait_until 180 accept_no_more "${workers[@]}" || fail "the proxy's earlier workers to accept no more connections"
    wait_until 180 is_well || fail "the proxy to go on with the new certificate"
    # Each worker of the proxy, and each connection.
    for _ in {1..20}; do
        ask POST /v1/kdf '{"userid":"ada"}'
        [[ $status == 200 || $status == 429 ]] || fail "an answer of the server, not $status"
    done
}

is_well() {
    ask GET /v1/account
    [[ $status == 200 ]]
}

# start_nginx: with the handbook's server; the location for shares has what the other has.
start_nginx() {
    mkdir --parents -- "$work/nginx"
    handbook_block 'nginx nginx 1' >"$work/server"
    sed -n '/^    location/,/^    }/p' "$work/server" | sed '1d;$d' >"$work/other"
    grep --quiet proxy_pass "$work/other" || fail "a location that passes on"
    handbook_block 'Share ids in proxy logs nginx 1' | sed -e "/# … and what the other location has/{r $work/other" -e 'd}' >"$work/shares"
    {
        printf '%s\n' 'daemon off;' 'user root;' "pid $work/nginx/pid;" "error_log $work/nginx/errors;" 'events {}' 'http {'
        printf 'access_log %s;\n' "$work/nginx/access"
        local each
        for each in client_body proxy fastcgi uwsgi scgi; do printf '%s_temp_path %s;\n' "$each" "$work/nginx"; done
        sed -e '$d' -e "s|listen 443|listen 127.0.0.1:$port|; s|api.example.org|localhost|; s|/etc/nginx|$work|
            s|127.0.0.1:8443|127.0.0.1:$own_port|" "$work/server"
        sed "s|api.example.org|localhost|; s|/etc/nginx|$work|" "$work/shares"
        echo '}'
        echo '}'
    } >"$work/nginx/configuration"
    cp -- "$own_home/tls/certificate.pem" "$work/saltern.pem"
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
expect_stream_and_large_body

scenario "nginx goes on while the server's certificate is renewed"
renew_behind nginx "$work"

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
end_process "$(own_server_process)" TERM 180
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
mkdir --parents -- "$work/ha"
cat "$work/api.pem" "$work/api.key" >"$work/ha/api.pem"
cp -- "$own_home/tls/certificate.pem" "$work/ha/saltern.pem"
passed=$(free_port)
{
    printf '%s\n' global '    log stdout format raw local0' defaults '    log global' '    option httplog'
    handbook_block 'HAProxy haproxy 1' | sed "s|bind :443|bind 127.0.0.1:$port|; s|/etc/haproxy|$work/ha|
        s|api.example.org|localhost|g; s|127.0.0.1:8443|127.0.0.1:$own_port|"
    printf '%s\n' 'listen passes' '    mode tcp' '    option tcplog' '    timeout connect 5s' '    timeout client 10m' \
        '    timeout server 10m' "    bind 127.0.0.1:$passed" "    server saltern 127.0.0.1:$own_port"
} >"$work/haproxy"
grep --quiet --fixed-strings "$(handbook_spans | grep '^http-request set-log-level')" "$work/haproxy" || fail "one way to keep ids out of the log"
haproxy -c -q -f "$work/haproxy" >"$work/proxy" 2>&1 || fail "HAProxy to take it: $(<"$work/proxy")"
start_proxy haproxy -W -db -f "$work/haproxy"
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

scenario "HAProxy delivers a stream, takes large bodies, and goes on while the server's certificate is renewed"
expect_stream_and_large_body
renew_behind haproxy "$work/ha"

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
handbook_block 'PROXY protocol haproxy 1' |
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
if curl --silent --noproxy '*' --max-time 180 --cacert "$certificate" --interface 127.0.0.4 --haproxy-protocol \
    "https://localhost:$own_port/v1/service" --resolve "localhost:$own_port:127.0.0.1" >"$work/body" 2>&1; then
    fail "a header from elsewhere to be refused"
fi
if curl --silent --noproxy '*' --max-time 180 --cacert "$certificate" --interface 127.0.0.2 \
    "https://localhost:$own_port/v1/service" --resolve "localhost:$own_port:127.0.0.1" >"$work/body" 2>&1; then
    fail "the proxy without its header to be refused"
fi
wait_until 180 grep --quiet '"event":"proxy_headers_refused"' "$own_home/run.log" || fail "a line in the log"
