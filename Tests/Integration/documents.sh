#!/usr/bin/env bash
# The documents name exactly what the programs have: codes, commands, options, events of the log, plans and rate limits. Each
# list comes from the program itself. (client-walk.sh has the codes of saltern-client, metrics.sh the metrics,
# SettingsReferenceTests the settings, and scripts/prose checks every link.)
# shellcheck disable=SC2016  # backquotes are those of Markdown
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/handbook.sh
source "$repository/scripts/lib/handbook.sh"

require_client
cd -- "$repository"
configure=$(handbook_page configure)

# same WHAT LEAST: the lines of $work/program and of $work/documented, which are at least so many.
same() {
    sort --unique --output "$work/program" "$work/program"
    sort --unique --output "$work/documented" "$work/documented"
    (($(wc --lines <"$work/program") >= $2)) || fail "to find at least $2: $1"
    diff "$work/program" "$work/documented" >"$work/difference" || fail "$1 of the program (<) and of documents (>): $(<"$work/difference")"
}

# spans FILE…: what the text has in backquotes, a line each.
spans() {
    sed '/^```/,/^```$/d' -- "$@" | tr '\n' ' ' | grep --only-matching '`[^`]*`' | tr -d '`' | sed 's/  */ /g; s/\\|/|/g' | sort --unique
}

# in_table FILE HEADER COLUMN: a column of the table that has this header.
in_table() { sed -n "/^| $2 |/,/^\$/{/^|[ -]*-/d;/^| $2 |/d;/^|/p}" "$1" | cut --delimiter '|' --fields "$(($3 + 1))"; }

# table FILE HEADER COLUMN…: these columns, with single blanks between them and without backquotes.
table() {
    local file=$1 header=$2 column
    shift 2
    for column in "$@"; do in_table "$file" "$header" "$column" | tr -d '`' >"$work/column-$column"; done
    paste --delimiters ' ' "${@/#/$work/column-}" | sed 's/  */ /g; s/^ //; s/ $//'
}

scenario "the API guide has every code of a problem, and no others, and openapi.yaml has every one"
{
    # Problem(.notFound, "not_found"), Problem(HTTPStatus(507), "storage_full"), over two lines too; 499 is for the log only
    grep --recursive --null-data --only-matching --perl-regexp --no-filename \
        'Problem\(\s*(\.\w+|HTTPStatus\((?!499)\d+\)),\s*"\K[a-z0-9_]+' Sources | tr '\0' '\n'
    # the parsers' reasons
    sed -n 's/^ *case [a-zA-Z0-9]* = "\([a-z0-9_]*\)"$/\1/p' Sources/HTTPServer/HTTP1/HTTP1Error.swift Sources/HTTPCore/JSON/JSONError.swift
} >"$work/program"
table docs/api-guide.md 'Status | Code | Action' 2 | tr ',' '\n' | tr -d ' ' >"$work/documented"
same "the codes" 100
while read -r code; do
    grep --quiet --word-regexp --fixed-strings -- "$code" openapi.yaml || fail "the code $code in openapi.yaml"
done <"$work/program"

# commands_of PROGRAM: a line each; commands that no one types with the program's name first have it, too.
commands_of() { "$1" --help | sed -n 's/^  \([a-z-]\{1,\}\( [a-z-]\{1,\}\)\{0,2\}\)  .*/\1/p'; }

scenario "the handbook has every command, and no others"
commands_of "$executable" >"$work/program"
handbook_commands | sed --regexp-extended 's/^saltern //; s/^([a-z-]+( [a-z-]+)?).*/\1/' >"$work/documented"
same "the commands" 40

# options_of NAME PROGRAM: lines like `NAME account list --all`.
options_of() {
    local command words
    while read -r command; do
        read -ra words <<<"$command"
        printf '%s %s --help\n' "$1" "$command"
        "$2" "${words[@]}" --help | { grep --only-matching --extended-regexp '^ +--[a-z-]+(, --[a-z-]+)*' || true; } |
            tr ',' '\n' | sed "s/^ */$1 $command /"
    done < <(commands_of "$2")
}
{ options_of saltern "$executable" && options_of saltern-client "$client"; } >"$work/options"
(($(wc --lines <"$work/options") > 300)) || fail "to find the options"

# all_documented PROGRAM FILE…: each option is in one of the files.
all_documented() {
    local option
    while read -r option; do
        grep --quiet --word-regexp --fixed-strings -- "$option" "${@:2}" || fail "$1 $option in ${*:2}"
    done < <(sed -n "s/^$1 .*\(--.*\)/\1/p" "$work/options" | grep --invert-match --line-regexp --regexp=--help | sort --unique)
}

scenario "every option is documented"
mapfile -t pages < <(handbook_page)
all_documented saltern "${pages[@]}" docs/services.md docs/events.md
all_documented saltern-client docs/command.md docs/shared-vaults.md docs/tutorials/command-line.md docs/passkeys-in-clients.md

# command_lines FILE…: what is typed in blocks, and spans: a command each, without its remark.
command_lines() {
    {
        sed -n '/^ *```/,/^ *```$/p' -- "$@" | sed --regexp-extended ':again; /\\$/{N; s/\\\n *//; b again}; s/(^| )# .*//' |
            sed --regexp-extended 's/ [|;&]+ /\n/g; s/.*\$\(//'
        spans "$@"
    } | sed 's/^ *//; s/^sudo //'
}

# takes PROGRAM WORD…: whether its command has each option among the words. The command is one word, two or three.
takes() {
    local program=$1 command word
    shift
    command="$1"
    [[ $# -lt 2 ]] || ! grep --quiet "^$program $1 $2 --" "$work/options" || command="$1 $2"
    if [[ $# -ge 3 && $3 =~ ^[a-z-]+$ ]] && grep --quiet "^$program $1 $2 $3 --" "$work/options"; then command="$1 $2 $3"; fi
    grep --quiet "^$program $command --" "$work/options" || return 1
    for word in "$@"; do
        if [[ $word == -- ]]; then return 0; fi
        [[ $word =~ ^[\[]?(--[a-z][a-z-]*) ]] || continue
        grep --quiet --line-regexp --fixed-strings -- "$program $command ${BASH_REMATCH[1]}" "$work/options" || return 1
    done
}

scenario "every command line in a document has options that there are"
mapfile -t documents < <(find . -name '*.md' -not -path './.*' | sort)
command_lines "${documents[@]}" | grep --extended-regexp '^saltern(-client|-admin)? .*--[a-z]' | sort --unique >"$work/typed"
(($(wc --lines <"$work/typed") > 30)) || fail "to find the command lines"
while read -ra words; do
    # It has commands of its own, which are a script.
    if [[ ${words[0]} == saltern-admin && ${words[1]} == setup ]]; then continue; fi
    # `saltern … --help` is about all of them.
    if [[ ${words[1]} == --* || ${words[1]} == *[A-Z…]* ]]; then continue; fi
    takes "${words[0]%-admin}" "${words[@]:1}" || fail "options that there are: ${words[*]}"
done <"$work/typed"
# In the pages of a program its commands have no program's name: `sync --watch`.
while read -ra words; do
    if grep --quiet "^saltern-client ${words[0]} " "$work/options"; then
        takes saltern-client "${words[@]}" || fail "options that there are: saltern-client ${words[*]}"
    fi
done < <(spans docs/command.md docs/shared-vaults.md | grep '^[a-z].* --[a-z]')

scenario "every option in the pages of saltern-client is one of its options"
spans docs/command.md docs/shared-vaults.md | sed -n 's/^\(--[a-z][a-z-]*\).*/\1/p' | sort --unique | while read -r option; do
    grep --quiet "^saltern-client .* $option\$" "$work/options" || fail "an option that there is: $option"
done

scenario "the handbook has every event of the log, and no others"
grep --recursive --null-data --only-matching --perl-regexp --no-filename --include='*.swift' \
    '\.write\(\s*[^"();]{1,60}"\K[a-z_]+(?=")|writer\.member\("event", "\K[a-z_]+' Sources | tr '\0' '\n' >"$work/program"
handbook_events >"$work/documented"
same "the events" 40

scenario "the handbook has the rate limits"
sed -n 's/^ *\.\([a-zA-Z]*\): RateLimit(burst: \([0-9_]*\), perSecond: \([0-9._]*\)),*$/\1 \2 \3/p' \
    Sources/SalternServer/Application/RateLimits/RateLimits.swift | tr -d _ |
    sed --regexp-extended ':again; s/^([a-z-]*)([A-Z])/\1-\l\2/; t again' >"$work/program"
table "$configure" 'Class | Routes | Burst | Per second' 1 3 4 | tr -d , >"$work/documented"
same "the rate limits" 7

scenario "the handbook has the plans of a new database"
start_own_server
# Amounts as the handbook writes them: 10,000, or 1 MiB.
saltern plan list --json | jq --raw-output '.plans[] | .plan as $plan | .. | objects | to_entries[]
    | select(.value | type == "number") | "\($plan) \(.key) \(.value)"' >"$work/program"
for column in 3 4; do
    plan=$(sed -n 's/^| Option | Limit | `\([a-z]*\)` | `\([a-z]*\)` |$/\1 \2/p' "$configure" | cut --delimiter ' ' --fields $((column - 2)))
    table "$configure" 'Option | Limit | `default` | `pro`' 1 "$column" | tr -d , | while read -r option amount unit; do
        case $unit in
            MiB) amount=$((amount * 1024 ** 2)) ;;
            GiB) amount=$((amount * 1024 ** 3)) ;;
        esac
        sed --regexp-extended 's/-([a-z])/\u\1/g' <<<"$plan ${option#--} $amount"
    done
done >"$work/documented"
same "the limits of plans" 12
