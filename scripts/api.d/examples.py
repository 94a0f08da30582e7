"""Prints a Swift file with the examples in doc comments of the client kit, each as a function of its own."""

import pathlib
import re
import sys

HEAD = """import Foundation
import SalternClient

private struct Note: Codable, Sendable { var text: String }

"""
PARAMETERS = (
    "_ vault: Vault, _ settings: VaultSettings, _ notes: VaultCollection<Note>, _ id: ItemID, _ typed: String, "
    "_ password: Password, _ newPassword: Password, _ file: URL, _ link: URL"
)


def examples(folder):
    """The place and the lines of each example."""
    for file in sorted(folder.rglob("*.swift")):
        if "Apple" in file.parts:
            continue
        block, start = None, 0
        for number, line in enumerate(file.read_text().splitlines(), 1):
            text = re.sub(r"^\s*/// ?", "", line)
            if re.match(r"^\s*///", line) is None:
                block = None
            elif block is None and text == "```swift":
                block, start = [], number + 1
            elif block is not None and text == "```":
                yield file, start, block
                block = None
            elif block is not None:
                block.append(text)


def main():
    folder = pathlib.Path(sys.argv[1])
    found = list(examples(folder))
    if len(found) < 10:
        sys.exit("scripts/api.d/examples.py: there are no examples")
    print(HEAD, end="")
    for index, (file, line, block) in enumerate(found):
        print(f"private func example{index}({PARAMETERS}) async throws {{")
        print(f'#sourceLocation(file: "{file}", line: {line})')
        print("\n".join(block))
        print("#sourceLocation()\n}\n")


if __name__ == "__main__":
    main()
