"""Sentences, their lengths, and the words that documents avoid."""

import re
from collections.abc import Iterator

import blocks

PROGRAM = (
    r"(?:servers?|clients?|programs?|commands?|saltern|databases?|postgresql|kit|library|devices?|repl(?:y|ies)|responses?|"
    r"requests?|endpoints?|api|loops?|pools?|prox(?:y|ies)|it|stores?|keyrings?|statements?|errors?|messages?|logs?|headers?|"
    r"fields?|tables?|documents?|pages?|doctor|¤)"
)
STATUS = r"(?:400|401|403|404|405|406|408|409|410|411|412|413|414|415|417|421|422|426|428|429|431|5[0-1][0-9])"
ACCOUNT = r"(?:the|their|an|your|its) account"

# An expression, and what to write instead.
AVOIDED = [
    (r"who(?:ever|soever)|whatever", "name the thing: anyone who …"),
    (r"somebody(?:['’]s)?|someone(?:['’]s)?", "a user, anyone"),
    (r"nobody(?! (?:can|may|else)\b)", "name the thing (a guarantee: nobody can …)"),
    (r"anew", "again"),
    (r"for ever|forever", "permanently"),
    (r"of before", "earlier"),
    (r"by halves", "partially"),
    (r"all the same", "still"),
    (r"wrong words", "usage error"),
    (r"he|him|his|himself", "they, their"),
    (r"(?:is|are|was|were|be|been|being) told", "receives"),
    (r"says|tells|hears", "returns, reports, states"),
    (r"a look|looks(?! up\b)", "attempt; checks; seems"),
    (
        PROGRAM + r" (?:(?:that|which) )?(?:(?:does not|do not|cannot|can|must|will|may|never) )?"
        r"(?:say|tell|hear|knows?|look(?! up\b))",
        "programs return, report, check, store",
    ),
    (
        rf"(?<!status )(?<!code )(?:is|are) (?:an? |one |the same )?{STATUS}(?! *(?:[kMG]i?B|ms|s|bytes|lines|words)\b)",
        "returns 404",
    ),
    (r"(?:its|their|a|the|his|whose) turns?", "queue slot"),
    (r"bites?", "batch"),
    (r"lanes?", "pool"),
    (r"leas(?:e|es|ed)", "dedicated connection"),
    (r"(?:an?|each|its) rooms?|rooms|houses?", "module"),
    (rf"lea(?:ve|ves|ving) {ACCOUNT}", "delete the account"),
    (r"stretch(?:es|ed|ing)?", "derive"),
    (r"time (?:went|goes|has gone) back", "database rollback"),
]
# In a change log these are the subject.
HISTORY = [
    (r"no longer|any ?more", "the present state"),
    (
        rf"(?:before|since|until|up to) (?:version |release |saltern )?{blocks.CODE}?0\.\d+",
        "the present state; history is in CHANGELOG.md",
    ),
]

# A full stop after these ends no sentence.
ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|cf|vs|approx|no)\.$", re.IGNORECASE)
END = re.compile(r"[.!?…][)\]\"'’”]*\s+(?=[\"'‘“(\[]*(?:[A-Z0-9]|" + blocks.CODE + "))")
OPENING = re.compile(r"^[\"'‘“(\[]*(What|Who|Whoever|Whatever|Whether|How)\b", re.IGNORECASE)


def words(text: str) -> int:
    return sum(1 for word in text.split() if re.search(r"[\w" + blocks.CODE + "]", word))


def sentences(text: str) -> Iterator[str]:
    start = 0
    for found in END.finditer(text):
        if text[found.start()] == "." and ABBREVIATION.search(text[: found.start() + 1]):
            continue
        yield text[start : found.end()].strip()
        start = found.end()
    yield text[start:].strip()


def begins_with_clause(sentence: str) -> bool:
    """A subject like `what the server stores`; questions are allowed."""
    return OPENING.match(sentence) is not None and not sentence.rstrip("\"'’”)").endswith("?")


def avoided(text: str, is_history: bool) -> Iterator[tuple[str, str]]:
    """The words of the text that documents avoid, and what to write instead."""
    for expression, instead in AVOIDED if is_history else AVOIDED + HISTORY:
        for found in re.finditer(rf"(?<![\w¤-])(?:{expression})(?![\w-])", text, re.IGNORECASE):
            yield found[0], instead
