# shellcheck shell=bash disable=SC2034
# The Swift toolchain: there, and new enough.

minimum_swift=6.2

# What is released, so that one build is what tests try and scripts/package packs.
# The first specialises generic code of one target for the types of another: a quarter less CPU for an authenticated read.
# Here and not in the manifest, where it would be an unsafe flag, with which no package can be depended on. The others link
# Swift's runtime in, and give the program the same names of its sources, whatever the folder is called.
release_options=(--configuration release -Xswiftc -cross-module-optimization --static-swift-stdlib -Xswiftc -gnone
    -Xswiftc -file-prefix-map -Xswiftc "$repository=/usr/src/saltern" -Xcc "-ffile-prefix-map=$repository=/usr/src/saltern"
    -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now -Xlinker --build-id=none)
# "${release_build[@]}" PRODUCT: an array, because a background job needs its process id and not that of a shell.
release_build=(swift build --package-path "$repository" "${release_options[@]}" --product)

# What is built from nothing and run at once: module by module, each type-checked once, and without what debuggers need, it
# is less work. (Without the index that editors need there would be a tenth less, but in it SwiftPM looks for XCTest cases;
# with an entry point of one's own it does not, and then a plain `swift test` runs nothing.)
quick_options=(-debug-info-format none -Xswiftc -wmo -Xswiftc -no-emit-module-separately-wmo
    -Xswiftc -num-threads -Xswiftc "$(nproc)")

# Everything, for tests, with the example app. In a folder of its own: with other options in one folder, an editor's builds and
# these would undo each other.
# Package.swift has the flags of each module.
test_folder=$repository/.build/tests
test_build=(env "SALTERN_TEST_THREADS=$(nproc)" SALTERN_WITH_EXAMPLE=1 swift build --package-path "$repository"
    --scratch-path "$test_folder" --build-tests -debug-info-format none -Xswiftc -warnings-as-errors)
test_program=$test_folder/debug/salternPackageTests.xctest

# with_quick_allocator COMMAND…: compilers ask for memory more than for anything else, and with jemalloc, where it is installed,
# a build is a tenth less work. Nothing of it is in what is built.
with_quick_allocator() {
    local library
    library=$(/sbin/ldconfig --print-cache | sed --quiet 's/.* => \(.*libjemalloc\.so\.2\)$/\1/p' | head -n 1)
    env ${library:+"LD_PRELOAD=$library"} "$@"
}

# What the compiler calls this machine, such as x86_64-unknown-linux-gnu.
host_triple() { swiftc -print-target-info | sed --quiet 's/^ *"triple": "\(.*\)",$/\1/p' | sed --quiet 1p; }

require_swift() {
    command -v swift >/dev/null ||
        die "no 'swift' on the PATH. Saltern needs Swift $minimum_swift or newer: https://www.swift.org/install/linux/"
    local banner version
    banner=$(swift --version 2>/dev/null) || die "'swift --version' failed: $(command -v swift)"
    [[ $banner =~ Swift\ version\ ([0-9]+\.[0-9]+) ]] || die "cannot read a version out of: $banner"
    version=${BASH_REMATCH[1]}
    is_at_least "$version" "$minimum_swift" ||
        die "Swift $version is too old: Saltern needs $minimum_swift or newer: https://www.swift.org/install/linux/"
}

# is_at_least VERSION MINIMUM, each MAJOR.MINOR
is_at_least() {
    local major=${1%.*} minor=${1#*.} least_major=${2%.*} least_minor=${2#*.}
    ((major > least_major || (major == least_major && minor >= least_minor)))
}
