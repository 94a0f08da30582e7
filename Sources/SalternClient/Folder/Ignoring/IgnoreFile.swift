internal import Foundation

/// The patterns of one file `.salternignore`, which apply to its folder.
struct IgnoreFile: Hashable, Sendable {
    static let name = ".salternignore"
    static let byteLimit = 64 << 10
    static let lineByteLimit = 1_024
    static let patternLimit = 1_000

    private let patterns: [IgnorePattern]

    /// - Parameter bytes: The content, of at most ``byteLimit``.
    init(_ bytes: [UInt8]) throws(IgnoreFault) {
        if bytes.count > Self.byteLimit { throw IgnoreFault(.fileTooLong) }
        if bytes.contains(0) { throw IgnoreFault(.notText) }
        // Some editors begin a text with a byte order mark.
        let text = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes.dropFirst(3) : bytes[...]
        var patterns: [IgnorePattern] = []
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (number, line) in zip(1..., lines) {
            do throws(IgnoreFault) {
                if line.count > Self.lineByteLimit { throw IgnoreFault(.lineTooLong) }
                guard let line = String(validating: line, as: UTF8.self) else { throw IgnoreFault(.notText) }
                if let pattern = try IgnorePattern(line: line) { patterns.append(pattern) }
            } catch {
                throw IgnoreFault(error.reason, line: number)
            }
        }
        if patterns.count > Self.patternLimit { throw IgnoreFault(.tooManyPatterns) }
        self.patterns = patterns
    }

    /// Returns true when the last matching pattern ignores the entry; nil when none matches.
    /// - Parameter names: The path from the folder of the ignore file on.
    func decide(_ names: ArraySlice<[UInt8]>, isFolder: Bool) -> Bool? {
        patterns.last { $0.matches(names, isFolder: isFolder) }.map { !$0.isNegated }
    }

    /// Returns true for the name of an ignore file, or of its conflict copy. The patterns of a copy apply, too.
    /// Otherwise a conflict would send entries that one side ignores.
    static func isName(_ name: some StringProtocol) -> Bool {
        name == Self.name || name.hasPrefix("\(Self.name) (conflict, ")
    }
}

/// One pattern of an ignore file. The syntax is that of gitignore(5).
struct IgnorePattern: Hashable, Sendable {
    private enum Part: Hashable, Sendable {
        case name(NamePattern)
        /// `**`: any number of folders, including none.
        case folders
    }

    /// True when a match is not ignored (`!`).
    let isNegated: Bool
    /// True when only folders match (`/` at the end).
    private let isForFolders: Bool
    /// True when the whole path below the ignore file's folder is compared, and not only the last name.
    private let isPath: Bool
    private let parts: [Part]

    /// Parses one line, without its line break.
    /// - Returns: nil for an empty line and a comment.
    init?(line: String) throws(IgnoreFault) {
        // Names on the disk are in this form, too.
        var bytes = Self.withoutSpaces(Array(line.precomposedStringWithCanonicalMapping.utf8))
        if bytes.isEmpty || bytes[0] == UInt8(ascii: "#") { return nil }
        isNegated = bytes[0] == UInt8(ascii: "!")
        if isNegated { bytes.removeFirst() }
        isForFolders = bytes.last == UInt8(ascii: "/")
        if isForFolders { bytes.removeLast() }
        isPath = bytes.contains(UInt8(ascii: "/"))
        if bytes.first == UInt8(ascii: "/") { bytes.removeFirst() }
        var parts: [Part] = []
        for name in bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(Array.init) {
            if isPath, name == Array("**".utf8) {
                if parts.last != .folders { parts.append(.folders) }
            } else {
                parts.append(.name(try NamePattern(name)))
            }
        }
        // At the end it matches everything in the folder, and not the folder.
        if parts.last == .folders { parts.append(.name(.any)) }
        self.parts = parts
    }

    /// Returns the bytes without spaces at the end, except for an escaped one.
    private static func withoutSpaces(_ line: [UInt8]) -> [UInt8] {
        var bytes = line
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        while bytes.last == UInt8(ascii: " ") {
            let backslashes = bytes.dropLast().reversed().prefix { $0 == UInt8(ascii: "\\") }.count
            if backslashes % 2 == 1 { break }
            bytes.removeLast()
        }
        return bytes
    }

    /// Returns true when an entry matches.
    ///
    /// The time is proportional to the number of names times the number of parts: after a mismatch only the last `**`
    /// takes one more name.
    /// - Parameter names: The path from the folder of the ignore file on.
    func matches(_ names: ArraySlice<[UInt8]>, isFolder: Bool) -> Bool {
        guard let last = names.last, isFolder || !isForFolders else { return false }
        if !isPath {
            guard case .name(let pattern)? = parts.first else { return false }
            return pattern.matches(last)
        }
        var (name, part) = (names.startIndex, 0)
        var retry: (name: Int, part: Int)?
        while name < names.endIndex {
            if part < parts.count, case .name(let pattern) = parts[part], pattern.matches(names[name]) {
                (name, part) = (name + 1, part + 1)
            } else if part < parts.count, parts[part] == .folders {
                retry = (name, part + 1)
                part += 1
            } else if let next = retry {
                (name, part) = (next.name + 1, next.part)
                retry = (name, part)
            } else {
                return false
            }
        }
        return part == parts.count
    }
}

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

/// The reason for which an ignore file cannot be applied.
public struct IgnoreFault: Error, Hashable, Sendable {
    /// The reasons. The raw values are stable, for scripts.
    public enum Reason: String, Sendable {
        /// The file has more than 64 KiB.
        case fileTooLong = "file_too_long"
        /// A line has more than 1,024 bytes.
        case lineTooLong = "line_too_long"
        /// The file has more than 1,000 patterns.
        case tooManyPatterns = "too_many_patterns"
        /// The file is not UTF-8, or contains a NUL.
        case notText = "not_text"
        /// The pattern has no name, as `!` or `/` alone, or an empty one, as `a//b`.
        case emptyName = "empty_name"
        /// The pattern contains the name `.` or `..`, which no path in the folder contains.
        case dotName = "dot_name"
        /// The pattern ends with a backslash that escapes nothing.
        case trailingBackslash = "trailing_backslash"
        /// A bracket expression has no end.
        case openBracket = "open_bracket"
        /// The entry with the name of an ignore file is a link, a folder or a special file.
        case noFile = "no_file"
        /// The file cannot be read.
        case unreadable
    }

    /// The kind of the fault.
    public let reason: Reason
    /// The line, counted from 1; nil for a fault of the whole file.
    public let line: Int?

    init(_ reason: Reason, line: Int? = nil) {
        self.reason = reason
        self.line = line
    }
}
