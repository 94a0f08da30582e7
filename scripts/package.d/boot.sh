# shellcheck shell=bash disable=SC2154
# Boots a fresh Debian in namespaces of its own, for scripts/package --test.

machine=
machine_group=

# require_bootable: fails with the reason if this machine cannot boot it.
require_bootable() {
    is_root || die "to boot a Debian needs root"
    unshare --mount --net --pid --uts --ipc --cgroup --fork true 2>/dev/null ||
        die "to boot a Debian needs namespaces, and this machine gives none: unshare fails, as in a container without CAP_SYS_ADMIN"
    grep --quiet --word-regexp cgroup2 /proc/filesystems || die "to boot a Debian needs control groups of version 2"
    grep --quiet --word-regexp overlay /proc/filesystems || modprobe overlay 2>/dev/null ||
        die "to boot a Debian needs the file system overlay"
}

# start_machine ROOT: ROOT stays as it is.
start_machine() {
    local groups=$work/groups
    mkdir -- "$groups"
    mount -t cgroup2 cgroup2 "$groups"
    machine_group=$groups$(sed --quiet 's/^0:://p' /proc/self/cgroup)/saltern-machine-$$
    mkdir -- "$machine_group"
    setpriv --pdeathsig KILL unshare --mount --net --pid --uts --ipc --fork --kill-child --propagation private \
        "$parts/machine" "$1" "$machine_group" </dev/null >"$work/machine.log" 2>&1 &
    machine=$!
    wait_until 180 is_booting || die "systemd did not start: $(<"$work/machine.log")"
}

# The first process of the machine, as the others see it.
first_process() { cat -- "/proc/$machine/task/$machine/children" 2>/dev/null | tr --delete ' '; }

in_machine() {
    nsenter --target "$(first_process)" --all env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root "$@"
}

is_booting() {
    is_running "$machine" || die "systemd did not start: $(<"$work/machine.log")"
    [[ $(readlink "/proc/$(first_process)/exe") == */systemd ]] && in_machine test -S /run/systemd/private
}

# stop_machine: with its first process all others end.
stop_machine() {
    if [[ -n $machine ]]; then
        kill -KILL "$(first_process)" "$machine" 2>/dev/null || true
        wait "$machine" 2>/dev/null || true
        machine=
    fi
    if [[ -n $machine_group ]]; then
        wait_until 180 remove_group || say "control groups are left in $machine_group"
        umount -- "$work/groups" || true
        machine_group=
    fi
}

# Those of processes that are ending cannot be removed yet.
remove_group() {
    [[ ! -d $machine_group ]] || find "$machine_group" -depth -type d -exec rmdir {} + 2>/dev/null
}

# boot_in ROOT: the package's life under systemd.
boot_in() {
    require_bootable
    say "booting a fresh Debian"
    start_machine "$1"
    timeout --foreground 600 nsenter --target "$(first_process)" --all env --ignore-environment \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root /packages/booted.sh || {
        in_machine journalctl --no-pager --lines 60 >&2 || true
        die "the package does not live under systemd"
    }
    stop_machine
}
