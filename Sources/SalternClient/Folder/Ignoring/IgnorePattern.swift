internal import Foundation

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
