# shellcheck shell=bash disable=SC2034,SC2154
# The Python tools of the tests: in .venv, with every version pinned in Tests/requirements.txt.

python=$repository/.venv/bin/python

# A second caller waits for the first one.
ensure_python_tools() (
    local venv=$repository/.venv requirements=$repository/Tests/requirements.txt
    mkdir --parents -- "$repository/.build"
    exec 9>"$repository/.build/python.lock"
    flock 9
    # The copy of the list has the installed packages.
    if ! cmp --silent -- "$requirements" "$venv/installed.txt"; then
        rm -rf -- "$venv"
        /usr/bin/python3 -m venv "$venv" || die "could not make $venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile --requirement "$requirements" ||
            die "could not install $requirements"
        cp -- "$requirements" "$venv/installed.txt"
    fi
)

# Checks the types of all Python programs, and runs the tests of their common package. A folder's files import each other by their bare names, so each folder is checked
# separately.
check_python() {
    local folder
    ensure_python_tools
    find scripts Tests -name '*.py' -printf '%h\n' | sort --unique | grep --invert-match --extended-regexp '/(traffic|attacks)$' |
        while read -r folder; do
            MYPYPATH=scripts/lib:$folder .venv/bin/mypy --cache-dir .build/mypy --check-untyped-defs --no-strict-optional \
                --disable-error-code var-annotated --ignore-missing-imports --no-error-summary -- "$folder" ||
                { echo "in $folder" && return 1; }
        done
    PYTHONPATH=scripts/lib .venv/bin/python -B -m unittest traffic.test_patience
}

# run_deno ARGUMENT…: Deno, which fetches nothing but what the script in it asks for.
run_deno() {
    DENO_DIR=$repository/.build/deno DENO_NO_UPDATE_CHECK=1 NO_COLOR=1 "$repository/.venv/bin/deno" "$1" \
        --quiet --no-config --no-lock --no-remote --no-npm "${@:2}"
}

# Checks the types of the JavaScript for web pages, of its tests and of its document, and runs the vectors.
check_javascript() {
    local examples=.build/web.js
    ensure_python_tools
    {
        echo '// @ts-check'
        echo 'const { userid, password, token, signal, show } = /** @type {any} */ ({});'
        # shellcheck disable=SC2016  # backquotes are those of Markdown
        sed -n '/^```js$/,/^```$/{/^```/d;p}' docs/web.md | sed 's#"./saltern.js"#"../clients/web/saltern.js"#'
    } >"$examples"
    run_deno check clients/web/*.js Tests/Web/*.js "$examples"
    run_deno run --allow-read Tests/Web/vectors_deno.js
}
