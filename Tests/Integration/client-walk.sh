#!/usr/bin/env bash
# The documents of saltern-client: the reference is complete, and every block of the tutorial runs.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client

scenario "docs/command.md and docs/shared-vaults.md have every command, exit status and code, and no others"
pages=("$repository/docs/command.md" "$repository/docs/shared-vaults.md")
# shellcheck disable=SC2016  # backquotes of Markdown
# column NUMBER HEADING: what a column of the tables beneath a heading has in backquotes, in either page, a line each.
column() {
    sed -n --separate "/^## $2/,/^## /p" "${pages[@]}" | grep '^|' | cut --delimiter '|' --fields "$1" | grep --only-matching '`[^`]*`' | tr -d '`'
}
# equal WHAT EXPECTED FOUND: two files of words.
equal() {
    (($(wc --lines <"$2") > 10)) || fail "to find the $1"
    diff <(sort --unique "$2") <(sort --unique "$3") || fail "the $1 in docs/command.md and docs/shared-vaults.md"
}
"$client" --help | sed -n 's/^  \([a-z-]\{1,\}\( [a-z-]\{1,\}\)\{0,2\}\)  .*/\1/p' >"$work/commands"
column 2 Commands | sed 's/ [A-Z[].*//' >"$work/documented"
equal commands "$work/commands" "$work/documented"
sources=$repository/Sources/saltern-client
{
    grep --recursive --no-filename --only-matching --perl-regexp 'code(: | = )"\K[a-z_]+' "$sources" "$repository/Sources/CommandLineKit"
    sed '/^extension/q' "$sources/Explanation.swift" | grep --only-matching --perl-regexp '(, |^ *)"\K[a-z_]+(?="\))'
    # Only the status shows that there are notices.
} | grep --invert-match --line-regexp attention >"$work/codes"
{ column 3 'Exit statuses' && column 2 'JSON output'; } >"$work/documented"
equal codes "$work/codes" "$work/documented"
{ printf '%s\n' 0 1 64 && sed -n 's/.*Int32 = \([0-9]*\)$/\1/p' "$sources/ExitStatus.swift"; } >"$work/statuses"
sed -n --separate '/^## Exit statuses/,/^## /s/^| \([0-9]*\) |.*/\1/p' "${pages[@]}" >"$work/documented"
equal "exit statuses" "$work/statuses" "$work/documented"

scenario "every block of docs/tutorials/command-line.md runs"
extract_walk docs/tutorials/command-line.md "s|ada@example.org|$(unique ada)|"
run_walk 'Buy salt and pepper.' 'was changed here and elsewhere' 'is deleted, on the server and here'
