"""Prints a Swift file with the examples in doc comments of the client kit, each as a function of its own."""

import pathlib
import re
import sys

# Examples of views, of parts of statements and of an app's own functions are not compiled.
SKIPPED = re.compile(
    r"UIImage|: View|Button\(|^\.|^catch |^case |^settings\.|\bsource\b|transport = try|following|…|showLogin|modified", re.MULTILINE
)

HEAD = """import Foundation
import SalternClient

private struct List: Codable, Sendable { var name: String }

private struct Note: Codable, Sendable {
    var text: String
    var photo: Attachment!
    var list: ItemID?

    init(text: String, photo: Attachment? = nil, list: ItemID? = nil) {
        (self.text, self.photo, self.list) = (text, photo, list)
    }
}

private func show(_ values: Any..., hiddenCount: Int = 0) {}

"""
PARAMETERS = (
    "_ vault: Vault, _ settings: VaultSettings, _ notes: VaultCollection<Note>, _ lists: VaultCollection<List>, _ id: ItemID, "
    "_ draft: ItemID, _ selection: [ItemID], _ typed: String, _ text: String, _ joined: String, _ password: Password, "
    "_ file: URL, _ url: URL, _ link: URL, _ jpeg: Data, _ item: PlainItem, _ attachment: Attachment, _ folder: URL, "
    "_ server: PinnedServer, _ transport: any HTTPTransport, _ pin: String, _ backupPin: String"
)
VARIABLES = {"edits": "VaultEdits()", "note": 'Note(text: "Buy salt.")'}


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
                if not SKIPPED.search("\n".join(block)):
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
        print(f"@MainActor private func example{index}({PARAMETERS}) async throws {{")
        used = {name: value for name, value in VARIABLES.items() if re.search(rf"\b{name}\b", "\n".join(block))}
        print("\n".join(f"var {name} = {value}" for name, value in used.items()) + "\ndo {")
        print(f'#sourceLocation(file: "{file}", line: {line})')
        print("\n".join(block))
        print(f"#sourceLocation()\n}}\n_ = ({', '.join(used)})\n}}\n")


if __name__ == "__main__":
    main()
