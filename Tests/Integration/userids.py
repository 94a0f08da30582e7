"""The canonical form of userids, as docs/protocol.md defines it. Prints that of each example, a line of JSON each."""

import base64
import json
import re
import sys
import unicodedata

SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
EDGES = re.compile(f"^[{SPACE}]+|[{SPACE}]+$")
# What Unicode calls default-ignorable and no category tells, and the Braille pattern without dots.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)


def is_blinded(text):
    try:
        return len(text) == 44 and base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except ValueError:
        return False


def canonical(text):
    """None for what can be no userid."""
    if is_blinded(text):
        return text
    form, last = text, None
    while form != last:
        form, last = EDGES.sub("", unicodedata.normalize("NFKC", form).lower()), form
    if not 1 <= len(form.encode()) <= 254 or INVISIBLE.search(form):
        return None
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cn", "Zl", "Zp") for character in form):
        return None
    return form


with open(sys.argv[1], encoding="utf-8") as file:
    for example in json.load(file):
        print(json.dumps(canonical(example["text"])))
