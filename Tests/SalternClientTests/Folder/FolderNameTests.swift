import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Names of files that are near each other.
@Suite struct FolderNameTests {
    /// Some are equal to Swift, which knows later versions of Unicode than those that made them NFC.
    @Test(arguments: [
        ("\u{16d67}\u{16d67}", "\u{16d68}"), ("\u{11382}\u{113c9}", "\u{11383}"), ("\u{105d2}\u{307}", "\u{105c9}"),
        ("a", "A"), ("a", "a"),
    ])
    func `two paths are one when their bytes are`(one: String, other: String) throws {
        let (one, other) = (try FolderPath(one), try FolderPath(other))
        let isSame = Array(one.text.utf8) == Array(other.text.utf8)
        #expect((one == other) == isSame)
        #expect(Set([one, other]).count == (isSame ? 1 : 2))
        var view = FolderView()
        let content = FileContent(digest: [1], byteCount: 1, isExecutable: false)
        view.local = [one: content]
        view.local[other] = content
        #expect(FolderDecision.decide(view).count == (isSame ? 1 : 2))
    }

    @Test func `patterns of a folder do not apply to one whose name is equal to Swift`() throws {
        let names = ["\u{105c9}", "\u{105d2}\u{307}"]
        let folder = try TemporaryDirectory(.memory)
        for (name, pattern) in zip(names, ["*.log", "*.tmp"]) {
            #expect(mkdir(folder.path + "/" + name, 0o700) == 0)
            for (file, text) in [(".salternignore", pattern), ("a.log", ""), ("a.tmp", "")] {
                try Data(text.utf8).write(to: URL(filePath: folder.path + "/" + name + "/" + file))
            }
        }
        var report = FolderReport()
        let scan = try FolderTree(folder.path).walk(into: &report)
        let found = Set(scan.files.keys.map(\.text.utf8).map { Array($0) })
        #expect(
            found
                == Set(
                    [
                        names[0] + "/.salternignore", names[0] + "/a.tmp", names[1] + "/.salternignore",
                        names[1] + "/a.log",
                    ].map { Array($0.utf8) }))
        #expect(scan.folders.count == 2 && scan.ignored.count == 2)
    }

    @Test(arguments: [
        ("report (conflict, of interest).txt", "report (conflict, of interest) (conflict, phone, 2026-01-02).txt"),
        ("a (conflict, phone, 2026-01-01).txt", "a (conflict, phone, 2026-01-02).txt"),
        ("a (conflict, phone, 2026-01-01, 2).txt", "a (conflict, phone, 2026-01-02).txt"),
        ("a (conflict, 0123abcd).txt", "a (conflict, phone, 2026-01-02).txt"),
        ("a (conflict, my, phone, 2026-01-01).txt", "a (conflict, phone, 2026-01-02).txt"),
    ])
    func `the words of a conflict go, and those of a person stay`(name: String, copy: String) throws {
        #expect(try FolderPath(name).conflicting("phone, 2026-01-02").text == copy)
    }

    @Test func `a file that a wrong clock has changed in the future is read once`() {
        let now: Int64 = 1_700_000_000_000_000_000
        let day: Int64 = 86_400_000_000_000
        func isYoung(_ modified: Int64, _ changed: Int64) -> Bool {
            FileSignature(inode: 1, byteCount: 1, modified: modified, changed: changed).isYoung(at: now)
        }
        #expect(!isYoung(now + day, now + day))
        #expect(!isYoung(now - day, now + day))
        #expect(isYoung(now - day, now))
        // A network's disk whose clock is a little ahead.
        #expect(isYoung(now + 5_000_000_000, now + 5_000_000_000))
    }
}
