#!/usr/bin/env bash
# The documents name what the program has: every code of a problem, every setting, every command.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

cd -- "$repository"

# every WHAT DOCUMENT…: each line of standard input is a word of one of the documents.
every() {
    local what=$1 word count=0
    shift
    while read -r word; do
        count=$((count + 1))
        grep --quiet --word-regexp --fixed-strings -- "$word" "$@" || fail "$what $word in $*"
    done
    ((count >= 10)) || fail "to find more than $count in the sources"
}

scenario "every code of a problem is documented"
# For routes with required query parameters, of which there are none.
no_route_says='missing_parameter'
{
    # Problem(.notFound, "not_found"), over two lines too
    grep --recursive --null-data --only-matching --perl-regexp --no-filename 'Problem\(\s*\.\w+,\s*"\K[a-z0-9_]+' Sources | tr '\0' '\n'
    # the parsers' reasons
    sed -n 's/^ *case [a-zA-Z0-9]* = "\([a-z0-9_]*\)"$/\1/p' Sources/HTTPServer/HTTP1/HTTP1Error.swift Sources/HTTPCore/JSON/JSONError.swift
} | sort --unique | grep --invert-match --line-regexp "$no_route_says" | every "the code" openapi.yaml docs/clients.md

scenario "every code that is documented exists"
sed -n '/^## 6. Errors/,/^### Sending/p' docs/clients.md | grep '^| [0-9]' | cut --delimiter '|' --fields 3 |
    grep --only-matching '[a-z0-9_]*_[a-z0-9_]*' | while read -r code; do
    grep --quiet --recursive --fixed-strings "\"$code\"" Sources || fail "the code $code in the sources"
done

scenario "every setting is documented, and every documented one exists"
saltern serve --help | grep --only-matching '^ *SALTERN_[A-Z_]*' | tr -d ' ' | every "the setting" docs/admins.md
grep --only-matching '^| `SALTERN_[A-Z_]*' docs/admins.md | tr -d '|` ' | while read -r name; do
    grep --quiet --recursive --fixed-strings "\"$name\"" Sources/saltern || fail "the setting $name in the sources"
done

scenario "the defaults in the handbook are those of the program"
saltern serve --help | sed -n 's/^ *\(SALTERN_[A-Z_]*\)  *\([a-z0-9.:]*[a-z0-9]\).*/\1 \2/p' | while read -r name value; do
    row=$(grep "^| \`$name\`" docs/admins.md)
    [[ $row == *"\`$value\`"* || $row == *'| required |' || $row == *"| $value"* || $row == *"$value |" ]] || fail "$value in: $row"
done

scenario "every command is documented"
# In the handbook's table a row has the commands of one word: `saltern migrate up`, `finish`, `status`.
listed=$(saltern --help | sed -n 's/^  \([a-z-]*\( [a-z-]*\)\{0,1\}\)   *.*/\1/p')
(($(wc --lines <<<"$listed") > 30)) || fail "the list of commands: $listed"
while read -r first second; do
    rows=$(grep "^| \`saltern ${second:+$first}" docs/admins.md) || rows=
    grep --quiet --extended-regexp "\`(saltern )?(${second:+$first }|)${second:-$first}[ \`]" <<<"$rows" ||
        fail "saltern $first $second in the table of docs/admins.md"
done <<<"$listed"

scenario "every file that the documents link to is there"
for document in *.md docs/*.md; do
    { grep --only-matching '](\([^)#:]*\))' "$document" || true; } | sed 's/^](//; s/)$//' | while read -r link; do
        [[ -e $(dirname -- "$document")/$link ]] || fail "$link, which $document links to"
    done
done
