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
            if found := re.fullmatch(r"  ([a-z-]+(?: [a-z-]+){0,2})  +(\S.*)", line):
                words = tuple(found[1].split())
                heading, text = say(executable, *words).split("\n\n", 1)
                self.commands[words] = (heading.split(": ", 1)[1], text.rstrip("\n"))
        # Between the commands and the exit statuses, or the sentence about --help.
        paragraphs = overview.split("\n\n")
        self.notes = paragraphs[-3 if "Exit statuses:" in overview else -2].splitlines()

        self.statuses = "\n".join(self._statuses(overview))

    def _statuses(self, overview):
        """The table in the overview, or the statuses of the server's program."""
        lines = overview.splitlines()
        if "Exit statuses:" not in lines:
            return [
                "0    success",
                "1    failed: one line for each problem on standard error",
                "64   usage error",
                "78   serve: settings, rights, passwords or schema need a change",
                "130  ended by SIGINT",
                "143  ended by SIGTERM",
            ]
        table = lines[lines.index("Exit statuses:") + 1 :]
        return table[: table.index("")]

    def examples(self):
        return [text.rsplit("\n\nExample:\n  ", 1)[1] for _, text in self.commands.values()]

    def variables(self):
        """The settings that `serve` lists."""
        text = self.commands.get(("serve",), ("", ""))[1]
        return re.findall(r"^  (SALTERN_[A-Z_]+)  ", text, flags=re.MULTILINE)

    def callers(self):
        """The names under which the program is called."""
        return ["saltern", "saltern-admin"] if self.name == "saltern" else [self.name]

    def options(self, words):
        text = self.commands[words][1]
        options = re.findall(r"^\s+(--[a-z][a-z-]*)", text, flags=re.MULTILINE)
        return sorted({*options, "--help"})

    def following(self, *prefix):
        """The next words of the commands that begin so."""
        count = len(prefix)
        return list(dict.fromkeys(words[count] for words in self.commands if words[:count] == prefix and len(words) > count))

    def prefixes(self):
        """The beginnings of commands, from none to all words but the last."""
        return list(dict.fromkeys(words[:count] for words in self.commands for count in range(len(words))))

    def groups(self):
        """The beginnings that are no commands, without the empty one."""
        return [prefix for prefix in self.prefixes() if prefix and prefix not in self.commands]

    def summary(self, words):
        return self.commands[words][0] if words in self.commands else ", ".join(self.following(*words))


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


ENVIRONMENT = {
    "saltern": "Settings are variables SALTERN_\\&…; each can name a file instead, as NAME_FILE.",
    "saltern-client": "XDG_CONFIG_HOME, XDG_DATA_HOME: folders of the files below. XDG_RUNTIME_DIR: folder of edited "
    "content. VISUAL, EDITOR: the editor. HOME: where the XDG variables are not set.",
}
FILES = {
    "saltern": [
        ("SALTERN_TLS_DIRECTORY", "certificate.pem, key.pem and backup\\-key.pem"),
        ("SALTERN_MASTER_KEY_FILE", "the key that seals secrets in the database"),
    ],
    "saltern-client": [
        ("$XDG_CONFIG_HOME/saltern\\-client/accounts", "profiles without secrets (~/.config)"),
        ("$XDG_DATA_HOME/saltern\\-client/accounts", "encrypted stores and device keys (~/.local/share)"),
        ("DIR/.saltern", "state and trash of a folder in sync"),
    ],
}
SEE_ALSO = {
    "saltern": ".BR saltern\\-admin (8),\n.BR saltern\\-client (1),\n.I /usr/share/doc/saltern/docs/admin/",
    "saltern-client": ".BR saltern (1),\n.I /usr/share/doc/saltern/docs/command.md",
}


def manual(program, version, date):
    name = program.name
    yield f'.TH {roff(name.upper())} 1 "{date}" "{name} {version}" "Saltern"'
    yield ".SH NAME"
    yield f"{roff(name)} \\- {roff(program.purpose)}"
    yield f".SH SYNOPSIS\n.B {roff(name)}\n.I COMMAND\n.RI [ OPTIONS ]"
    yield ".SH DESCRIPTION"
    yield from (roff(line) for line in program.notes)
    yield ".SH COMMANDS"
    for words, (summary, text) in program.commands.items():
        yield f".SS {roff(name)} {roff(' '.join(words))}"
        yield roff(summary[0].upper() + summary[1:]) + "."
        yield ".PP\n.nf"
        yield roff(text)
        yield ".fi"
    yield ".SH ENVIRONMENT"
    yield ENVIRONMENT[name]
    for variable in program.variables():
        yield f".TP\n.B {variable}\nSee\n.B {roff(name)} serve."
    yield ".SH FILES"
    for file, content in FILES[name]:
        yield f".TP\n.I {file}\n{content}"
    yield ".SH EXIT STATUS"
    yield ".nf"
    yield roff(program.statuses)
    yield ".fi"
    yield ".SH EXAMPLES"
    yield ".nf"
    yield from (roff(example) for example in program.examples())
    yield ".fi"
    yield ".SH SEE ALSO"
    yield SEE_ALSO[name]


def shell_pattern(words):
    """The pattern of up to three words of a command line that begins with these."""
    return f"'{' '.join(words)}'" if len(words) == 3 else f"'{' '.join(words)} '*"


def bash(program):
    function = f"_{program.name.replace('-', '_')}"
    yield f"# bash completion for {program.name}"
    yield f"{function}() {{"
    yield '    local current=${COMP_WORDS[COMP_CWORD]} words='
    yield "    # shellcheck disable=SC2207"
    yield '    if ((COMP_CWORD == 1)); then'
    yield f"        COMPREPLY=($(compgen -W '{' '.join(program.following())} --help --version' -- \"$current\"))"
    yield "        return"
    yield "    fi"
    yield '    case "${COMP_WORDS[1]} ${COMP_WORDS[2]-} ${COMP_WORDS[3]-}" in'
    for words in sorted([*program.commands, *program.groups()], key=len, reverse=True):
        if words in program.commands:
            offered = [*program.options(words), *program.following(*words)]
            yield f"        {shell_pattern(words)}) words='{' '.join(offered)}' ;;"
        else:
            offered = program.following(*words)
            yield f"        {shell_pattern(words)}) ((COMP_CWORD == {len(words) + 1})) && words='{' '.join(offered)}' ;;"
    yield "    esac"
    yield "    # shellcheck disable=SC2207"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield '    ((${#COMPREPLY[@]} > 0)) || COMPREPLY=($(compgen -f -- "$current"))'
    yield "}"
    yield f"complete -o filenames -F {function} {' '.join(program.callers())}"


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(program):
    yield f"#compdef {' '.join(program.callers())}"
    yield "local -a choices"
    yield "if ((CURRENT == 2)); then"
    yield f"    choices=({' '.join(program.following())} --help --version)"
    yield "else"
    yield '    case "$words[2] $words[3] $words[4]" in'
    for words in sorted([*program.commands, *program.groups()], key=len, reverse=True):
        if words in program.commands:
            offered = [*program.options(words), *program.following(*words)]
            yield f"        {shell_pattern(words)}) choices=({' '.join(offered)}) ;;"
        else:
            described = " ".join(
                quoted(f"{following}:{program.summary((*words, following))}") for following in program.following(*words)
            )
            yield (
                f"        {shell_pattern(words)}) choices=({described}); "
                f"((CURRENT == {len(words) + 2})) && {{ _describe command choices; return; }} ;;"
            )
    yield "    esac"
    yield "fi"
    yield "compadd -a choices || _files"


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_seen(words):
    return "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words)


def fish(program):
    for command in program.callers():
        for prefix in program.prefixes():
            nexts = program.following(*prefix)
            condition = "__fish_use_subcommand"
            if prefix:
                condition = fish_quoted(f"{fish_seen(prefix)}; and not __fish_seen_subcommand_from {' '.join(nexts)}")
            for word in nexts:
                summary = fish_quoted(program.summary((*prefix, word)))
                yield f"complete -c {command} -n {condition} -f -a {word} -d {summary}"
        for words in program.commands:
            for option in program.options(words):
                yield f"complete -c {command} -n {fish_quoted(fish_seen(words))} -l {option[2:]}"


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
