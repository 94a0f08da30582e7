# shellcheck shell=bash disable=SC2034
# Debian packages: installs what is missing, and only that.

build_packages=(libevent-dev libpq-dev libssl-dev libcurl4-openssl-dev libsqlite3-dev libfido2-dev libcbor-dev
    pkg-config)
run_packages=("${build_packages[@]}" postgresql postgresql-client openssl curl ca-certificates)
browser_packages=(chromium fonts-liberation)
bench_packages=("${run_packages[@]}" postgresql-contrib wrk nginx-light python3 python3-asyncpg
    python3-cryptography valgrind jq)
suite_packages=("${run_packages[@]}" python3 faketime iproute2 iptables)
package_packages=("${build_packages[@]}" dpkg-dev lintian man-db binutils systemd python3)
package_test_packages=(mmdebstrap python3-venv iproute2)
shell_packages=(zsh fish)
counting_packages=(strace wrk)
recovery_packages=(pgbackrest)
# What the generated clients are compiled with and against.
client_packages=("${build_packages[@]}" postgresql-client openssl util-linux golang-go openjdk-17-jdk-headless
    libjakarta-annotation-api-java mono-mcs mono-runtime libnewtonsoft-json5.0-cil libmono-system-net-http4.0-cil
    libmono-system-runtime-serialization4.0-cil libmono-system-web4.0-cil
    libmono-system-componentmodel-dataannotations4.0-cil)
compose_packages=(docker.io docker-compose mmdebstrap iproute2 iptables curl openssl jq)
# Everything at once: steps that go beside each other must not install.
test_packages=("${run_packages[@]}" "${browser_packages[@]}" "${package_packages[@]}" "${package_test_packages[@]}"
    "${counting_packages[@]}" "${recovery_packages[@]}" "${client_packages[@]}" "${compose_packages[@]}"
    postgresql-contrib shellcheck libjemalloc2 docker-compose python3-venv jq faketime
    nodejs iproute2 iptables prometheus pgbouncer nginx-light haproxy)

is_installed() { [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# ensure_packages NAME…
ensure_packages() {
    command -v dpkg-query >/dev/null ||
        die "this needs a Debian-like system (dpkg and apt-get). Install the equivalents of: $*"
    local missing=() name
    for name in "$@"; do
        is_installed "$name" || missing+=("$name")
    done
    ((${#missing[@]} == 0)) && return
    install_packages "${missing[@]}"
}

install_packages() {
    local as_root=()
    if ! is_root; then
        command -v sudo >/dev/null ||
            die "Debian packages are missing and there is no sudo. As root: apt-get install --yes $*"
        say "Debian packages are missing: $*. Installing them with sudo, which may ask for your password."
        as_root=(sudo)
    else
        say "installing the Debian packages that are missing: $*"
    fi
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
        apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=300 "$@")
    # Fresh package lists are only fetched when the present ones do not lead to the packages.
    if ! "${install[@]}" >/dev/null 2>&1; then
        "${as_root[@]}" apt-get update --quiet >&2 || die "apt-get update failed"
        "${install[@]}" >&2 || die "could not install: $*. Try: apt-get install $*"
    fi
}
