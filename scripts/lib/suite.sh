# shellcheck shell=bash disable=SC2154
# What scripts/hostile and scripts/soak have in common: a built server, a throw-away instance, a program in Python.

suite_executable=
suite_client=
suite_arguments=()

# suite_begin ARGUMENT…: takes --help and --executable out of the arguments, and builds the server when none is named.
suite_begin() {
    while (($# > 0)); do
        case $1 in
            --help | -h) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" && exit 0 ;;
            --executable)
                suite_executable=$(executable_path "$1" "${2:-}")
                shift 2
                ;;
            *) suite_arguments+=("$1") && shift ;;
        esac
    done
    stop_throwaway_at_end
    ensure_packages "${suite_packages[@]}"
    suite_build
}

# suite_begin_with_client ARGUMENT…: the same, also of --client, with a built `saltern-client` in suite_client.
suite_begin_with_client() {
    local words=()
    while (($# > 0)); do
        case $1 in
            --client)
                suite_client=$(executable_path "$1" "${2:-}")
                shift 2
                ;;
            *) words+=("$1") && shift ;;
        esac
    done
    suite_begin "${words[@]}"
    [[ -z $suite_client ]] || return 0
    require_swift
    "${release_build[@]}" saltern-client >&2
    suite_client=$repository/.build/release/saltern-client
}

suite_build() {
    [[ -z $suite_executable ]] || return 0
    require_swift
    "${release_build[@]}" saltern >&2
    suite_executable=$repository/.build/release/saltern
}

raise_file_limit() {
    (($1 <= $(ulimit -n))) || ulimit -n "$1" || die "cannot have $1 open files; see ulimit -n"
}

# suite_variable NAME: a variable of the server's instance.
suite_variable() { variable_of_run "$throwaway_home" "$1"; }

# suite_run NAME ARGUMENT…: scripts/NAME.d/NAME.py against the throw-away server. In the background, so that a signal ends
# it and not only us.
suite_run() { suite_run_program "$1.d/$1.py" "${@:2}"; }

# suite_run_program PATH ARGUMENT…: the same of a program in scripts/PATH.
suite_run_program() {
    local program=$1 url=$throwaway_url home=$throwaway_home
    shift
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$scripts/lib setpriv --pdeathsig TERM \
        /usr/bin/python3 "$scripts/$program" --url "$url" --home "$home" \
        --owner-database "$(suite_variable SALTERN_OWNER_DATABASE_URL)" "$@" &
    wait $!
}
