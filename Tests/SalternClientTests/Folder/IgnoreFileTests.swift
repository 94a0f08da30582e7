import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What the patterns of an ignore file match.
@Suite struct IgnoreFileTests {
    private func ignores(_ text: String, _ path: String) throws -> Bool {
        let isFolder = path.hasSuffix("/")
        let names = path.split(separator: "/").map { Array($0.utf8) }
        let scope = IgnoreScope().adding([try IgnoreFile(Array(text.utf8))], depth: 0)
        // As in a walk: what is in an ignored folder is ignored.
        for count in 1..<max(names.count, 1) where scope.ignores(Array(names.prefix(count)), isFolder: true) {
            return true
        }
        return scope.ignores(names, isFolder: isFolder)
    }

    /// The answers are those of `git check-ignore`, version 2.39, but where a comment says otherwise.
    @Test(arguments: [
        ("*.log", "a.log", true), ("*.log", "b/c/a.log", true), ("*.log", "a.logs", false), ("*.log", ".log", true),
        ("build/", "build/", true), ("build/", "build/a", true), ("build/", "build", false),
        ("build/", "x/build/a", true), ("/build", "build", true), ("/build", "x/build", false),
        ("a/b", "a/b", true), ("a/b", "x/a/b", false), ("a/*", "a/b", true), ("a/*", "a/b/c", true),
        ("a/*/c", "a/b/c", true), ("a/*/c", "a/b/d/c", false), ("**/c", "c", true), ("**/c", "a/b/c", true),
        ("a/**", "a/b/c", true), ("a/**", "a/", false), ("a/**/c", "a/c", true), ("a/**/c", "a/b/b/c", true),
        ("a/**/c", "b/a/c", false), ("**", "a", true), ("a/**/**/c", "a/c", true),
        ("*\n!keep", "keep", false), ("*\n!keep", "lose", true), ("!keep\n*", "keep", true),
        ("a/\n!a/b", "a/b", true), ("a/*\n!a/b", "a/b", false),
        ("# no", "# no", false), ("\\# yes", "# yes", true), ("\\!yes", "!yes", true), ("", "a", false),
        ("a ", "a", true), ("a\\ ", "a ", true), ("a\\ ", "a", false), ("a\r\nb\r\n", "a", true),
        ("[a-c]x", "bx", true), ("[!a-c]x", "bx", false), ("[]x]", "]", true), ("[[:digit:]]", "7", true),
        ("a\\*b", "a*b", true), ("a\\*b", "axb", false), ("foo**bar", "fooxbar", true),
        ("A", "a", false), ("x*y/z", "xay/z", true),
        // One character, where git takes one byte.
        ("?", "ä", true), ("[ä]", "ä", true), ("?", "ab", false),
        // In another form of Unicode than names have.
        ("a\u{308}", "\u{e4}", true), ("\u{feff}a", "a", true),
        // An ignore file is synced whatever the patterns say.
        ("*", ".salternignore", false), (".salternignore", "a/.salternignore", false),
        ("*", ".salternignore (conflict, phone, 2026-01-02)", false), ("*", ".salternignores", true),
    ])
    func `a pattern matches as in gitignore`(text: String, path: String, isIgnored: Bool) throws {
        #expect(try ignores(text, path) == isIgnored)
    }

    @Test(arguments: [
        ("a\n[b\n", IgnoreFault.Reason.openBracket, 2 as Int?), ("a\\", .trailingBackslash, 1), ("!", .emptyName, 1),
        ("/", .emptyName, 1), ("\n\na//b", .emptyName, 3), ("./build", .dotName, 1), ("../x", .dotName, 1),
        ("[[:alpha", .openBracket, 1), ("[", .openBracket, 1), ("a\0", .notText, nil),
    ])
    func `a pattern that cannot match as it was meant is refused with its line`(
        text: String, reason: IgnoreFault.Reason, line: Int?
    ) {
        #expect(throws: IgnoreFault(reason, line: line)) { try IgnoreFile(Array(text.utf8)) }
    }

    @Test func `what is too long is refused, and what is as long as allowed is not`() throws {
        func refusal(_ bytes: [UInt8]) -> IgnoreFault? {
            do throws(IgnoreFault) {
                _ = try IgnoreFile(bytes)
                return nil
            } catch {
                return error
            }
        }
        let line = [UInt8](repeating: UInt8(ascii: "a"), count: IgnoreFile.lineByteLimit)
        #expect(refusal(line) == nil)
        #expect(refusal(line + line) == IgnoreFault(.lineTooLong, line: 1))
        #expect(refusal([UInt8](repeating: 10, count: IgnoreFile.byteLimit)) == nil)
        #expect(refusal([UInt8](repeating: 10, count: IgnoreFile.byteLimit + 1)) == IgnoreFault(.fileTooLong))
        let patterns = Array(String(repeating: "a\n", count: IgnoreFile.patternLimit).utf8)
        #expect(refusal(patterns) == nil)
        #expect(refusal(patterns + Array("b".utf8)) == IgnoreFault(.tooManyPatterns))
        #expect(refusal([0x61, 10, 0xff]) == IgnoreFault(.notText, line: 2))
    }

    /// A matcher that tries all ways would not come to an end within the age of the universe.
    @Test func `patterns with many stars come to an end`() throws {
        let name = String(repeating: "a", count: 250)
        #expect(try !ignores(String(repeating: "*a", count: 120) + "*b", name))
        #expect(try !ignores(String(repeating: "*?a", count: 80) + "*b", name))
        #expect(try !ignores(String(repeating: "*[a-z]", count: 80) + "*[b]", name))
        let path = String(repeating: "a/", count: 900) + "a"
        let names = path.split(separator: "/").map { Array($0.utf8) }
        let file = try IgnoreFile(Array((String(repeating: "**/a/", count: 200) + "b").utf8.prefix(1_020)))
        #expect(file.decide(names[...], isFolder: false) == nil || file.decide(names[...], isFolder: false) == true)
        let last = try IgnoreFile(Array((String(repeating: "**/a/", count: 200) + "b").utf8))
        #expect(last.decide(names[...], isFolder: false) == nil)
    }

    @Test func `a name that is not UTF-8 is matched byte by byte`() throws {
        let scope = IgnoreScope().adding([try IgnoreFile(Array("*.tmp\n?x".utf8))], depth: 0)
        #expect(scope.ignores([[0xff, 0xfe] + Array(".tmp".utf8)], isFolder: false))
        #expect(scope.ignores([[0xff, UInt8(ascii: "x")]], isFolder: false))
        #expect(!scope.ignores([[0xff]], isFolder: false))
    }

    @Test func `the innermost folder with a pattern that matches decides`() throws {
        let outer = IgnoreScope().adding([try IgnoreFile(Array("*.log\n/a/x".utf8))], depth: 0)
        let inner = outer.adding([try IgnoreFile(Array("!keep.log\n/y".utf8))], depth: 1)
        func ignores(_ path: String) -> Bool {
            inner.ignores(path.split(separator: "/").map { Array($0.utf8) }, isFolder: false)
        }
        #expect(!ignores("a/keep.log") && ignores("a/lose.log") && ignores("a/x") && ignores("a/y"))
        #expect(!ignores("a/b/y"))
    }
}
