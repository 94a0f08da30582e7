"""Holds the HTTP/1.1 codec's idea of a valid request against h11's.

check             compares every case of requests.json with h11: what h11 refuses must be refused there too, where the
                  corpus is stricter it must say so ("h11": "accepts"), and where both accept they must see the same.
verdicts FILE N   writes N mutated requests, the same ones every time, with what h11 says about each, one JSON
                  object a line; the Swift test reads them and runs the real parser on them.

Bytes are written as text in which each character below U+0100 is one byte.
"""

import json
import pathlib
import random
import sys
from typing import Any

import h11

CORPUS = pathlib.Path(__file__).with_name("requests.json")
SEED = 9112


def without_empty_line(data):
    """What h11 refuses, and RFC 9112 2.2 has servers ignore: one empty line before a request line."""
    return data[2:] if data.startswith(b"\r\n") else b"" if data == b"\r" else data


def run_h11(data):
    """What h11 makes of the bytes: (refused, requests). A server of h11's closes after some requests; here what
    follows is always read, because whether to close is not the parser's business."""
    requests: list[dict[str, Any]] = []
    rest = data
    # To h11, receiving nothing means that the client has closed.
    while rest := without_empty_line(rest):
        connection = h11.Connection(h11.SERVER)
        connection.receive_data(rest)
        while True:
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError:
                return True, requests
            if isinstance(event, h11.Request):
                requests.append(
                    {
                        "method": event.method.decode("latin-1"),
                        "target": event.target.decode("latin-1"),
                        "body": "",
                        "complete": False,
                    }
                )
            elif isinstance(event, h11.Data):
                requests[-1]["body"] += bytes(event.data).decode("latin-1")
            elif isinstance(event, h11.EndOfMessage):
                requests[-1]["complete"] = True
                break
            else:
                assert event is h11.NEED_DATA, event
                return False, requests
        rest = connection.trailing_data[0]
    return False, requests


def check():
    cases = json.loads(CORPUS.read_text())
    problems = []
    stricter = []
    for case in cases:
        name = case["name"]
        refused, requests = run_h11(case["bytes"].encode("latin-1"))
        ours_refuses = case["outcome"] not in ("accepted", "incomplete")
        if refused and not ours_refuses:
            problems.append(f"{name}: h11 refuses it, the corpus takes it")
        if not refused and ours_refuses:
            stricter.append(f"{name} ({case['outcome']}: {case['why']})")
        if (case.get("h11") == "accepts") != (ours_refuses and not refused):
            problems.append(f"{name}: the corpus says that h11 {case.get('h11', 'agrees')}, which is not so")
        if not refused and not ours_refuses:
            theirs = [(r["method"], r["body"]) for r in requests]
            ours = [(r["method"], r["body"]) for r in case["requests"]]
            if theirs != ours:
                problems.append(f"{name}: h11 sees {theirs}, the corpus {ours}")
            if case["outcome"] == "accepted" and not all(r["complete"] for r in requests):
                problems.append(f"{name}: h11 waits for more")
    print(f"stricter than h11 in {len(stricter)} of {len(cases)} cases:")
    for line in stricter:
        print("  " + line)
    for line in problems:
        print("FAILED: " + line, file=sys.stderr)
    return 1 if problems or not cases else 0


TOKENS = [
    b"\r\n", b"\r", b"\n", b"\r\n\r\n", b"\0", b" ", b"\t", b":", b",", b";", b"=", b"\"", b"\x0b", b"\x7f", b"\xe9",
    b"Host: localhost\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n", b"Expect: 100-continue\r\n", b"0\r\n\r\n", b"1\r\nx\r\n", b"HTTP/1.1", b"HTTP/1.0",
    b"chunked", b"close", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"0", b"1", b"5", b"A", b"f", b"+", b"-",
]


def mutated(random_source, seeds, valid):
    data = bytearray(random_source.choice(valid if random_source.random() < 0.8 else seeds))
    for _ in range(random_source.choice([1, 1, 1, 2, 3])):
        position = random_source.randint(0, len(data))
        match random_source.randrange(7):
            case 0:
                del data[position : position + random_source.randint(1, 3)]
            case 1 | 2:
                data[position:position] = random_source.choice(TOKENS)
            case 3 if position < len(data):
                data[position] = random_source.randrange(256)
            case 4:
                lines = bytes(data).split(b"\r\n")
                line = random_source.choice(lines)
                lines.insert(random_source.randint(0, len(lines)), line)
                data = bytearray(b"\r\n".join(lines))
            case 5:
                other = random_source.choice(seeds)
                data = data[:position] + other[random_source.randint(0, len(other)) :]
            case 6 if position < len(data):
                data[position] ^= 0x20
    return bytes(data)


def verdicts(path, count):
    cases = json.loads(CORPUS.read_text())
    seeds = [case["bytes"].encode("latin-1") for case in cases]
    valid = [case["bytes"].encode("latin-1") for case in cases if case["outcome"] in ("accepted", "incomplete")]
    random_source = random.Random(SEED)
    with open(path, "w", encoding="ascii") as output:
        for _ in range(count):
            data = mutated(random_source, seeds, valid)
            refused, requests = run_h11(data)
            output.write(json.dumps({"bytes": data.decode("latin-1"), "refused": refused, "requests": requests}) + "\n")


def main(arguments):
    match arguments:
        case ["check"]:
            return check()
        case ["verdicts", path, count]:
            verdicts(path, int(count))
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


sys.exit(main(sys.argv[1:]))
