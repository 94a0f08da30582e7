"""A manual or a shell's completions, out of what the program says with --help.

describe.py man|bash|zsh|fish EXECUTABLE VERSION SECONDS-SINCE-1970
"""

import re
import subprocess
import sys
import time


def say(executable, *words):
    return subprocess.run([executable, *words, "--help"], check=True, capture_output=True, text=True).stdout


class Program:
    def __init__(self, executable):
        overview = say(executable)
        self.name, self.purpose = overview.split("\n", 1)[0].rstrip(".").split(": ", 1)
        self.commands = {}
        for line in overview.splitlines():
            if found := re.fullmatch(r"  ([a-z-]+(?: [a-z-]+)?)  +(\S.*)", line):
                words = tuple(found[1].split())
                heading, text = say(executable, *words).split("\n\n", 1)
                self.commands[words] = (heading.split(": ", 1)[1], text.rstrip("\n"))
        # After the last command, and without the sentence about --help.
        self.notes = overview.rstrip("\n").rsplit("\n\n", 1 + overview.count("Exit statuses"))[1].splitlines()

    def options(self, words):
        text = self.commands[words][1]
        options = re.findall(r"^\s+(--[a-z][a-z-]*)", text, flags=re.MULTILINE)
        return sorted({*options, "--help"})

    def following(self, first):
        """The second words of the commands that begin so."""
        return [words[1] for words in self.commands if words[0] == first and len(words) == 2]

    def firsts(self):
        return list(dict.fromkeys(words[0] for words in self.commands))


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def manual(program, version, date):
    yield f'.TH SALTERN 1 "{date}" "saltern {version}" "Saltern"'
    yield ".SH NAME"
    yield f"saltern \\- {roff(program.purpose)}"
    yield ".SH SYNOPSIS"
    yield ".B saltern\n.I COMMAND\n.RI [ OPTIONS ]"
    yield ".SH DESCRIPTION"
    yield from (roff(line) for line in program.notes)
    yield ".SH COMMANDS"
    for words, (summary, text) in program.commands.items():
        yield f".SS saltern {roff(' '.join(words))}"
        yield roff(summary[0].upper() + summary[1:]) + "."
        if text:
            yield ".PP\n.nf"
            yield roff(text)
            yield ".fi"
    yield ".SH EXIT STATUS"
    yield "0: done; 1: something to mend, one line each on standard error; 64: usage error; 130 and 143: ended by SIGINT or SIGTERM."
    yield ".SH SEE ALSO"
    yield ".BR saltern\\-admin (8),\n.I /usr/share/doc/saltern/docs/admin/"


def bash(program):
    yield "# bash completion for saltern"
    yield "_saltern() {"
    yield '    local current=${COMP_WORDS[COMP_CWORD]} words='
    yield "    # shellcheck disable=SC2207"
    yield '    if ((COMP_CWORD == 1)); then'
    yield f"        COMPREPLY=($(compgen -W '{' '.join(program.firsts())} --help --version' -- \"$current\"))"
    yield "        return"
    yield "    fi"
    yield '    case "${COMP_WORDS[1]} ${COMP_WORDS[2]-}" in'
    for words in program.commands:
        pattern = f"'{' '.join(words)}'" if len(words) == 2 else f"'{words[0]} '*"
        yield f"        {pattern}) words='{' '.join(program.options(words))}' ;;"
    for first in program.firsts():
        if seconds := program.following(first):
            yield f"        '{first} '*) ((COMP_CWORD == 2)) && words='{' '.join(seconds)}' ;;"
    yield "    esac"
    yield "    # shellcheck disable=SC2207"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield '    ((${#COMPREPLY[@]} > 0)) || COMPREPLY=($(compgen -f -- "$current"))'
    yield "}"
    yield "complete -o filenames -F _saltern saltern saltern-admin"


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(program):
    yield "#compdef saltern saltern-admin"
    yield "local -a choices"
    yield "if ((CURRENT == 2)); then"
    yield f"    choices=({' '.join(program.firsts())} --help --version)"
    yield "else"
    yield '    case "$words[2] $words[3]" in'
    for words in program.commands:
        pattern = f"'{' '.join(words)}'" if len(words) == 2 else f"'{words[0]} '*"
        yield f"        {pattern}) choices=({' '.join(program.options(words))}) ;;"
    for first in program.firsts():
        if program.following(first):
            described = " ".join(
                quoted(f"{words[1]}:{summary}") for words, (summary, _) in program.commands.items() if words[0] == first
            )
            yield f"        '{first} '*) choices=({described}); ((CURRENT == 3)) && {{ _describe command choices; return; }} ;;"
    yield "    esac"
    yield "fi"
    yield "compadd -a choices || _files"


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(program):
    for command in ("saltern", "saltern-admin"):
        for first in program.firsts():
            summary = program.commands.get((first,), (f"{', '.join(program.following(first))}",))[0]
            yield f"complete -c {command} -n __fish_use_subcommand -f -a {first} -d {fish_quoted(summary)}"
        for words, (summary, _) in program.commands.items():
            seen = f"__fish_seen_subcommand_from {words[0]}"
            if len(words) == 2:
                others = " ".join(program.following(words[0]))
                condition = fish_quoted(f"{seen}; and not __fish_seen_subcommand_from {others}")
                yield f"complete -c {command} -n {condition} -f -a {words[1]} -d {fish_quoted(summary)}"
                seen += f"; and __fish_seen_subcommand_from {words[1]}"
            for option in program.options(words):
                yield f"complete -c {command} -n {fish_quoted(seen)} -l {option[2:]}"


def main():
    kind, executable, version, seconds = sys.argv[1:]
    program = Program(executable)
    if len(program.commands) < 20:
        sys.exit(f"describe.py: found only {len(program.commands)} commands in {executable} --help")
    date = time.strftime("%Y-%m-%d", time.gmtime(int(seconds)))
    lines = {
        "man": lambda: manual(program, version, date),
        "bash": lambda: bash(program),
        "zsh": lambda: zsh(program),
        "fish": lambda: fish(program),
    }[kind]()
    print("\n".join(lines))


main()
