internal import Foundation

/// A pattern for one name in a path. `fnmatch` compares it (POSIX.1-2024, XCU 2.14).
struct NamePattern: Hashable, Sendable {
    /// Nil for a pattern without special characters.
    private let pattern: [CChar]?
    private let literal: [UInt8]

    /// Names are compared as UTF-8 in any locale of the process, so that all devices decide equally.
    nonisolated(unsafe) private static let locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil)

    static let any = NamePattern(unchecked: [UInt8(ascii: "*")])

    init(_ bytes: [UInt8]) throws(IgnoreFault) {
        try Self.check(bytes)
        self.init(unchecked: bytes)
    }

    private init(unchecked bytes: [UInt8]) {
        literal = bytes
        let isLiteral = !bytes.contains { "*?[\\".utf8.contains($0) }
        pattern = isLiteral ? nil : bytes.map { CChar(bitPattern: $0) } + [0]
    }

    /// Returns true when a name matches. A name that is not UTF-8 is compared byte by byte.
    func matches(_ name: [UInt8]) -> Bool {
        guard let pattern else { return name == literal }
        if String(validating: name, as: UTF8.self) == nil { return Self.isMatch(pattern, name) }
        let before = uselocale(Self.locale)
        defer { uselocale(before) }
        return Self.isMatch(pattern, name)
    }

    private static func isMatch(_ pattern: [CChar], _ name: [UInt8]) -> Bool {
        fnmatch(pattern, name.map { CChar(bitPattern: $0) } + [0], 0) == 0
    }

    private static func check(_ bytes: [UInt8]) throws(IgnoreFault) {
        if bytes.isEmpty { throw IgnoreFault(.emptyName) }
        if bytes == Array(".".utf8) || bytes == Array("..".utf8) { throw IgnoreFault(.dotName) }
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\\"):
                guard index + 1 < bytes.count else { throw IgnoreFault(.trailingBackslash) }
                index += 2
            case UInt8(ascii: "["):
                guard let end = endOfBracket(bytes, from: index + 1) else { throw IgnoreFault(.openBracket) }
                index = end + 1
            default: index += 1
            }
        }
    }

    /// Returns the index of the bracket that ends an expression (POSIX.1-2024, XBD 9.3.5).
    private static func endOfBracket(_ bytes: [UInt8], from start: Int) -> Int? {
        var index = start
        if index < bytes.count, bytes[index] == UInt8(ascii: "!") || bytes[index] == UInt8(ascii: "^") { index += 1 }
        // The first bracket in an expression is a member of it.
        if index < bytes.count, bytes[index] == UInt8(ascii: "]") { index += 1 }
        while index < bytes.count {
            let next = index + 1 < bytes.count ? bytes[index + 1] : 0
            switch bytes[index] {
            case UInt8(ascii: "]"): return index
            case UInt8(ascii: "\\"): index += 2
            case UInt8(ascii: "[") where ":.=".utf8.contains(next):
                // A class such as [:alpha:].
                var end = index + 2
                while end + 1 < bytes.count, bytes[end] != next || bytes[end + 1] != UInt8(ascii: "]") { end += 1 }
                guard end + 1 < bytes.count else { return nil }
                index = end + 2
            default: index += 1
            }
        }
        return nil
    }
}
