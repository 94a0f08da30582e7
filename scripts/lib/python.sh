# shellcheck shell=bash disable=SC2154
# The Python tools of the tests: in .venv, with every version pinned in Tests/requirements.txt.

ensure_python_tools() {
    local venv=$repository/.venv requirements=$repository/Tests/requirements.txt
    # The copy of the list says what is installed.
    if ! cmp --silent -- "$requirements" "$venv/installed.txt"; then
        rm -rf -- "$venv"
        /usr/bin/python3 -m venv "$venv" || die "could not make $venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" ||
            die "could not install $requirements"
        cp -- "$requirements" "$venv/installed.txt"
    fi
}
