# shellcheck shell=bash disable=SC2034
# Shared by every script: where the repository is, how to speak, how to stop.

repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)

say() { printf '%s\n' "$*" >&2; }

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

is_root() { [[ $(id -u) -eq 0 ]]; }

# absolute_path PATH: PATH seen from the folder in which the script was called; it need not exist yet.
absolute_path() { realpath --canonicalize-missing --no-symlinks -- "$1"; }

# executable_path OPTION PATH: the absolute path of a program that an option names.
executable_path() {
    local path
    [[ -n $2 ]] || die "$1 needs a path"
    path=$(absolute_path "$2")
    [[ -x $path ]] || die "cannot execute $path"
    printf '%s\n' "$path"
}

# wait_until SECONDS COMMAND…: tries the command ten times a second until it succeeds; 1 when time runs out.
wait_until() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

is_running() { kill -0 "$1" 2>/dev/null; }
is_gone() { ! is_running "$1"; }

# end_process PID SIGNAL SECONDS: asks the process to end, and makes it end when it has not after SECONDS.
end_process() {
    local pid=$1 signal=$2 patience=$3
    kill -s "$signal" "$pid" 2>/dev/null || return 0
    wait_until "$patience" is_gone "$pid" && return 0
    say "process $pid did not end within $patience s of SIG$signal; killing it"
    kill -s KILL "$pid" 2>/dev/null || true
}

# pin_of CERTIFICATE: the pin of the key in a file.
pin_of() {
    openssl x509 -in "$1" -noout -pubkey | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64 |
        sed 's|^|sha256//|'
}

# A loopback TCP port that nothing listens on now.
free_port() { free_ports 1; }

# free_ports COUNT: prints the first of so many consecutive ports. All clones of a user share the last port given out, so that
# two callers get different ports even before anything listens on them.
free_ports() (
    count=$1 found=0
    last_port=/tmp/saltern-last-port-$(id -u)
    exec 8>>"$last_port"
    flock 8
    port=$(tail -n 1 -- "$last_port")
    # The folder is open to other users, and bash would evaluate an expression.
    [[ $port =~ ^[0-9]{5}$ ]] || port=$((20000 + RANDOM % 12000))
    for _ in {1..50}; do
        port=$((20000 + (port - 20000 + 1) % 12000))
        # A connection that is refused means that the port is free.
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            found=0
            continue
        fi
        # Behind the last port comes the first.
        found=$((port == 20000 ? 1 : found + 1))
        if ((found == count)); then
            printf '%s\n' "$port" >"$last_port"
            printf '%s\n' "$((port - count + 1))"
            return
        fi
    done
    die "found no free port"
)
