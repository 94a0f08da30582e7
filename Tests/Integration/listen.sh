#!/usr/bin/env bash
# SALTERN_LISTEN is read in one way by serve, health and doctor: zones, all addresses, names with several, IPv6 that is switched
# off, and the system's default for IPv6 sockets. As root, in a network of its own.

# Only the command in the namespace has a server.
if [[ -z ${listen_namespace:-} ]]; then
    if ((EUID != 0)); then
        echo '-- skipped: only root makes a network namespace'
        exit 0
    fi
    hosts=$(mktemp)
    status=0
    listen_namespace=$hosts SALTERN_TEST_URL=https://localhost:1 SALTERN_TEST_HOME=/nonexistent \
        unshare --net --mount --propagation private "${BASH_SOURCE[0]}" || status=$?
    rm -f -- "$hosts"
    exit "$status"
fi
export -n listen_namespace
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

printf '127.0.0.1 localhost\n127.0.0.2 two.test\n::1 localhost two.test\n127.0.0.3 half.test\n2001:db8::1 half.test\n' \
    >"$listen_namespace"
chmod 0644 "$listen_namespace"
mount --bind "$listen_namespace" /etc/hosts
ip link set lo up
# An address of a link, which only its zone distinguishes from those of other links.
link=fe80::1
ip -6 address add "$link/64" dev lo

# It creates the instance, and its PostgreSQL continues to run. The servers of this script have a separate port.
start_own_server
port=$(free_port)

# serve_at LISTEN: the server, in place of the one before.
serve_at() {
    [[ -z $other_pid ]] || end_process "$other_pid" TERM 180
    start_other_server "$work/log" "SALTERN_LISTEN=$1"
    line=$(grep '"event":"server_started"' "$work/log")
}

# answers ADDRESS: whether it is served there.
answers() {
    [[ $(curl --silent --noproxy '*' --insecure --max-time 180 --output /dev/null --write-out '%{http_code}' \
        "https://$1:$port/v1/health/live") == 200 ]]
}

# helpers_agree LISTEN
helpers_agree() {
    local said
    said=$(with_settings "SALTERN_LISTEN=$1" "$executable" health --ready 2>&1) || fail "health to reach $1: $said"
    said=$(with_settings "SALTERN_LISTEN=$1" "$executable" doctor --json 2>&1) || fail "the doctor to find nothing in $1: $said"
    said=$(jq --raw-output '.findings[] | select(.subject == "listen").severity' <<<"$said")
    [[ $said == "${2:-fine}" ]] || fail "the doctor to say ${2:-fine} of $1, not $said"
}

# listens_at ADDRESS…: the log has these addresses.
listens_at() {
    local wanted
    wanted=$(printf '%s\n' "$@" | sort)
    [[ $(jq --raw-output .listening <<<"$line" | sed 's/, /\n/g' | sort) == "$wanted" ]] || fail "to listen at $*: $line"
}

scenario "an address of a link, with its zone"
serve_at "[$link%lo]:$port"
helpers_agree "[$link%lo]:$port"
listens_at "[$link%lo]:$port"

scenario "* and [::] are all addresses of both kinds"
for listen in '*' '[::]' '[0::0]'; do
    serve_at "$listen:$port"
    helpers_agree "$listen:$port"
    answers 127.0.0.1 || fail "IPv4 with $listen"
    answers '[::1]' || fail "IPv6 with $listen"
done
serve_at "0.0.0.0:$port"
helpers_agree "0.0.0.0:$port"
answers 127.0.0.1 || fail "IPv4"

scenario "whatever the system's default for IPv6 sockets is"
sysctl --quiet --write net.ipv6.bindv6only=1
for listen in '*' '[::]'; do
    serve_at "$listen:$port"
    helpers_agree "$listen:$port"
    answers 127.0.0.1 || fail "IPv4 with $listen"
    answers '[::1]' || fail "IPv6 with $listen"
done
sysctl --quiet --write net.ipv6.bindv6only=0

scenario "every address of a name is served"
serve_at "two.test:$port"
helpers_agree "two.test:$port"
listens_at "127.0.0.2:$port" "[::1]:$port"
answers 127.0.0.2 || fail "the first address"
answers '[::1]' || fail "the second address"
if answers 127.0.0.1; then fail "no other address"; fi

scenario "the log and the doctor say which address of a name the machine does not have"
serve_at "half.test:$port"
helpers_agree "half.test:$port" warning
listens_at "127.0.0.3:$port"

scenario "a name none of whose addresses is here, and a port that is taken, are refused"
printf '2001:db8::2 none.test\n' >>"$listen_namespace"
for listen in none.test '[2001:db8::3]' "[$link]" nowhere.test; do
    if said=$(with_settings "SALTERN_LISTEN=$listen:$(free_port)" timeout 300 "$executable" serve 2>&1); then
        fail "$listen to be refused: $said"
    fi
    [[ $said == *'cannot listen on'* ]] || fail "$listen to be refused because of the address: $said"
done
if said=$(with_settings "SALTERN_LISTEN=half.test:$port" timeout 300 "$executable" serve 2>&1); then
    fail "the port to be taken: $said"
fi
[[ $said == *'in use'* ]] || fail "the port to be taken: $said"

scenario "IPv6 switched off: * and [::] serve IPv4, a name its address for IPv4"
sysctl --quiet --write net.ipv6.conf.all.disable_ipv6=1
for listen in '*' '[::]' two.test localhost; do
    serve_at "$listen:$port"
    helpers_agree "$listen:$port" "$([[ $listen == *.test || $listen == localhost ]] && echo warning || echo fine)"
done
answers 127.0.0.1 || fail "IPv4"
end_process "$other_pid" TERM 180
