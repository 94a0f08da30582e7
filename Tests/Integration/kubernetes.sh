#!/usr/bin/env bash
# The environment of a server in Kubernetes: variables for a Service with its name, and keys of a Secret's volume, which belong
# to root, are readable by the group of fsGroup and behind links, for a process with another user. Needs root for the second
# part.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

service=(SALTERN_PORT=tcp://10.43.0.7:8443 SALTERN_SERVICE_HOST=10.43.0.7 SALTERN_SERVICE_PORT=8443 SALTERN_SERVICE_PORT_HTTPS=8443
    SALTERN_PORT_8443_TCP=tcp://10.43.0.7:8443 SALTERN_PORT_8443_TCP_PROTO=tcp SALTERN_PORT_8443_TCP_PORT=8443
    SALTERN_PORT_8443_TCP_ADDR=10.43.0.7 SALTERN_METRICS_SERVICE_HOST=fd00::8 SALTERN_METRICS_SERVICE_PORT=9464
    SALTERN_METRICS_PORT='tcp://[fd00::8]:9464')

start_own_server
register ada
port=$(free_port)

# enter_pod COMMAND…: in place of the shell that calls it, with the instance's settings and the variables of two Services.
enter_pod() { exec_with_settings "${service[@]}" SALTERN_LISTEN="127.0.0.1:$port" timeout 300 "$@"; }
in_pod() (enter_pod "$@")

scenario "a Service called saltern is in nobody's way: commands and server start beside its variables"
in_pod "$executable" version >/dev/null || fail "a command"
in_pod "$executable" account list >/dev/null || fail "a command that reads the database"
in_pod env SALTERN_LISTEN="127.0.0.1:$own_port" "$executable" health --ready || fail "the probe"
in_pod "$executable" doctor >"$work/doctor" || fail "the doctor: $(<"$work/doctor")"
if in_pod env SALTERN_SERVICE_PROT=8443 "$executable" doctor >"$work/doctor" 2>&1; then fail "a misspelt variable to be refused"; fi

if ! is_root; then
    echo "the keys of a Secret's volume are not tried: only root can start a process as another user"
    exit 0
fi

# A Secret's volume, in which the files are links into a folder that is exchanged as a whole. The process has a user of its own and
# the group of fsGroup beside its own group.
user=64010 group=64020
pod=$(mktemp --directory --tmpdir saltern-pod-XXXXXX)
folders_at_end=("$pod")
chmod 0755 -- "$pod"
# mount_secret MODE GROUP
mount_secret() {
    local file
    rm -rf -- "${pod:?}/secret"
    mkdir --parents -- "$pod/secret/..2026_11_28"
    for file in "$own_home/master.key" "$own_home/tls/certificate.pem" "$own_home/tls/key.pem" "$own_home/tls/backup-key.pem"; do
        install --owner root --group "$2" --mode "$1" -- "$file" "$pod/secret/..2026_11_28/"
        ln --symbolic "..data/$(basename -- "$file")" "$pod/secret/"
    done
    ln --symbolic ..2026_11_28 "$pod/secret/..data"
}
install --mode 0755 -- "$executable" "$pod/saltern"

# The instance's PostgreSQL lets only its own users in. So the database is one that is not there: keys are read before it is
# asked.
nowhere=$(free_port)
# begin_pod: a server in the background, with its log in $work/pod.
begin_pod() {
    : >"$work/pod"
    enter_pod setpriv --pdeathsig TERM --reuid "$user" --regid "$user" --groups "$group" \
        env SALTERN_TLS_DIRECTORY="$pod/secret" SALTERN_MASTER_KEY_FILE="$pod/secret/master.key" \
        SALTERN_DATABASE_URL="postgresql://nobody@127.0.0.1:$nowhere/saltern" \
        "$pod/saltern" serve >"$work/pod" 2>&1 </dev/null &
    serving=$!
}

for mode in 0640 0440; do
    scenario "it takes keys of root's that its group may read, mode $mode"
    mount_secret "$mode" "$group"
    begin_pod
    wait_until 180 grep --quiet waiting_for_database "$work/pod" || fail "the keys to be taken: $(<"$work/pod")"
    end_process "$serving" TERM 180
    wait "$serving" 2>/dev/null || true
done

# refused REASON: the server does not start.
refused() {
    local result=0
    begin_pod
    wait "$serving" || result=$?
    ((result == 78)) || fail "the exit status 78, not $result: $(<"$work/pod")"
    grep --quiet -- "$1" "$work/pod" || fail "'$1' in: $(<"$work/pod")"
}

scenario "keys that everybody may read are refused, and so are those that its groups may not"
mount_secret 0644 "$group"
refused 'chmod'
mount_secret 0640 64099
refused 'Permission denied'
