"""The rules for the text of comments that can be counted."""

import re
from collections.abc import Iterator

# Stands for a word of code, which has no grammar.
CODE = "¤"
WIDEST_LINE = 120
LONGEST_SENTENCE = 35

OPENING = re.compile(r"(?:What|Whether|How|Who|Whoever|Where|When|Whose|Of|That)\b")
PEOPLE = (
    r"(?:users?|people|persons?|administrators?|operators?|attackers?|strangers?|readers?|owners?|recipients?|contributors?|"
    r"anyone|those|callers?|friends?|family|guests?|thie(?:f|ves)|team|colleagues?|senders?)"
)
# Pronouns of people. A guarantee may have `nobody can`.
PRONOUNS = re.compile(
    r"\b(?:who|whom|whoever|somebody|someone|(?:nobody|no one)(?! (?:can|may|else)\b)|he|him|his)\b", re.IGNORECASE
)
# The words before a `who` of people: "a user who", "users of an account who".
FOLLOWS_PEOPLE = re.compile(rf"\b{PEOPLE},? (?:\w+ ){{0,4}}$", re.IGNORECASE)
TELLING = re.compile(r"\b(?:told|tells)\b", re.IGNORECASE)
PROGRAM = (
    r"(?:servers?|clients?|programs?|commands?|database|postgresql|kit|devices?|repl(?:y|ies)|requests?|endpoints?|loops?|pools?|"
    r"connections?|statements?|errors?|callers?|it|this)"
)
OTHERS = re.compile(
    rf"\b{PROGRAM} (?:(?:that|which) )?(?:(?:does not|do not|cannot|can|must|will|may|never) )?"
    r"(?:say|tell|hear|knows?|look)\b(?! up\b)|\b(?:looks(?! up\b)|a look)\b|"
    r"\b(?:says|hears|anew|for ever|forever|all the same|of before|by halves|in vain|lent|news|wrong words|"
    r"(?:its|their|the|a|whose) turns?|crowd(?:ed|s)?|(?<!third )part(?:y|ies)|graves?|bur(?:y|ies|ied)|heirs?)\b",
    re.IGNORECASE,
)
END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!cf)(?<!\bvs)[.!?…:][)\]\"'’”]*\s+(?=[\"'‘“(\[]*(?:[A-Z0-9`]|" + CODE + "))")
PARAMETER = re.compile(r"^\s*- (?:Parameter )?\w+:")
ITEM = re.compile(r"^\s*(?:- |\d+\. |\|)")


def prose(lines: list[str]) -> list[str]:
    """The lines without code blocks and names of parameters, and with a placeholder for each code span."""
    code = code_lines(lines)
    kept = ["" if number in code else PARAMETER.sub(f"- {CODE}:", line) for number, line in enumerate(lines)]
    # A code span may go on in the next line.
    text = re.sub(r"(`+)[^`]+?\1", lambda span: CODE + "\n" * span[0].count("\n"), "\n".join(kept))
    return text.split("\n")


def code_lines(lines: list[str]) -> set[int]:
    """The numbers of the lines of code blocks."""
    found, is_code = set(), False
    for number, line in enumerate(lines):
        is_fence = line.lstrip().startswith("```")
        if is_code or is_fence:
            found.add(number)
        is_code = is_code != is_fence
    return found


def opens_with_clause(lines: list[str]) -> bool:
    return OPENING.match(next((line for line in lines if line.strip()), "")) is not None


def pronouns(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Line and word for each pronoun of people that does not follow a word for people."""
    text = "\n".join(lines)
    for found in PRONOUNS.finditer(text):
        before = text[max(0, found.start() - 60) : found.start()].replace("\n", " ")
        if found[0].lower() in ("who", "whom") and FOLLOWS_PEOPLE.search(before):
            continue
        yield text.count("\n", 0, found.start()), found[0]


def words(pattern: re.Pattern[str], lines: list[str]) -> Iterator[tuple[int, str]]:
    text = "\n".join(lines)
    # A line break counts as a space.
    for found in pattern.finditer(text.replace("\n", " ")):
        yield text.count("\n", 0, found.start()), found[0]


def long_sentences(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The first line and the number of words of each sentence that is too long."""
    for first, paragraph in paragraphs(lines):
        start = 0
        for end in [*(found.end() for found in END.finditer(paragraph)), len(paragraph)]:
            count = sum(1 for word in paragraph[start:end].split() if re.search(rf"[\w{CODE}]", word))
            if count > LONGEST_SENTENCE:
                yield first + paragraph.count("\n", 0, start), f"{count} words"
            start = end


def paragraphs(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The first line and the text of each paragraph or list item."""
    first, text = 0, ""
    for number, line in enumerate([*lines, ""]):
        if not line.strip() or ITEM.match(line):
            if text:
                yield first, text
            first, text = number, line.strip()
        else:
            first, text = (first, f"{text}\n{line.strip()}") if text else (number, line.strip())
