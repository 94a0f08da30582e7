# shellcheck shell=bash disable=SC2154
# What scripts/package --test shows: two folders make the same bytes; and the package's life in a fresh Debian, with systemd as
# its first process and without.

# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"
# shellcheck source=scripts/package.d/boot.sh
source "$parts/boot.sh"

test_package() {
    local deb root=$work/debian
    deb=$(deb_of "$version")
    validate_list "$output/saltern.spdx.json"
    [[ -n $is_built ]] || build_elsewhere "$deb"
    debootstrap_into "$root" "$deb"
    mkdir "$root/packages"
    cp -- "$deb" "$root/packages/saltern.deb"
    version_before "$root/packages/before.deb"
    handbook_blocks "$root/packages"
    install --mode 0755 --target-directory "$root/packages" -- "$parts/life.sh" "$parts/booted.sh" "$parts/inside.sh"
    boot_in "$root"
    live_in "$root"
}

# validate_list FILE: with the tools of the format's authors.
validate_list() {
    ensure_python_tools
    "$repository/.venv/bin/pyspdxtools" --infile "$1" || die "$1 is no SPDX document"
}

# build_elsewhere DEB: the same commit and the same changes, in another folder.
build_elsewhere() {
    local other=$work/elsewhere
    mkdir -- "$other"
    (cd -- "$repository" && git ls-files -z --cached --others --exclude-standard | tar --null --files-from - --create) |
        tar --extract --directory "$other"
    "$other/scripts/package"
    cmp -- "$1" "$other/.build/package/$(basename -- "$1")" || die "another folder makes another package"
    cmp -- "$output/saltern.spdx.json" "$other/.build/package/saltern.spdx.json" || die "another folder makes another list"
    say "two folders make the same package"
}

# version_before DEB: no package of an earlier release can be had, so that the one before is this one under a lower number.
version_before() {
    local root=$work/root control=$work/root/DEBIAN/control
    sed --in-place "s/^Version: .*/&~before/" "$control"
    dpkg-deb --root-owner-group -Znone --build "$root" "$1" >/dev/null
}

# debootstrap_into FOLDER DEB: with the packages that the DEB depends on, so that it installs without a network.
debootstrap_into() {
    local dependencies
    dependencies=$(dpkg-deb --field "$2" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/ //g')
    say "making a fresh Debian"
    mmdebstrap --quiet --mode root --variant minbase --dpkgopt force-unsafe-io \
        --include "postgresql,systemd,curl,openssl,ca-certificates,strace,$dependencies" \
        "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$1"
}

# live_in ROOT: with processes of its own, which end with it, and a network of its own, in which no port is taken.
live_in() {
    local root=$1
    # shellcheck disable=SC2016  # the words are for the shell that unshare starts
    timeout 1800 unshare --mount --net --pid --fork --kill-child --propagation private bash -euc '
        ip link set lo up
        mount --bind "$1" "$1"
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec chroot "$1" env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root /packages/life.sh' _ "$root"
}
