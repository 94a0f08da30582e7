internal import Foundation

/// Where a file is, seen from the folder's root: names in NFC with slashes between them. Nothing that leads out of the
/// root, or into a corner of the kit's own, is one.
public struct FolderPath: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Why a text is no path. Titles come from other devices and are not trusted.
    public enum Refusal: Error, Hashable, Sendable {
        /// The text, or a name in it, is empty.
        case empty
        /// The text begins with a slash.
        case absolute
        /// A name is `.` or `..`.
        case leadsUp
        /// The text contains a NUL.
        case nul
        /// A name has more than 255 bytes, or the path more than 4,000.
        case tooLong
        /// A name is `.saltern`, which belongs to the kit.
        case reserved
    }

    /// Where the kit keeps marker, trash and what is not complete.
    static let corner = ".saltern"
    private static let nameLimit = 255
    private static let limit = 4_000

    /// The path as text: names in NFC with slashes between them.
    public let text: String
    let names: [String]

    /// Reads a path. The text is normalised to NFC.
    /// - Throws: ``Refusal`` for a text that is no path within the folder.
    public init(_ text: some StringProtocol) throws(Refusal) {
        let text = String(text).precomposedStringWithCanonicalMapping
        if text.isEmpty { throw .empty }
        if text.unicodeScalars.contains("\0") { throw .nul }
        if text.utf8.first == UInt8(ascii: "/") { throw .absolute }
        let names = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map {
            String(Substring($0))
        }
        for name in names {
            if name.isEmpty { throw .empty }
            if name == "." || name == ".." { throw .leadsUp }
            if name.utf8.count > Self.nameLimit { throw .tooLong }
        }
        if text.utf8.count > Self.limit { throw .tooLong }
        // Also where the file system does not tell "a" from "A", and of a folder in the folder, which may be in sync itself.
        if names.contains(where: { $0.lowercased() == Self.corner }) { throw .reserved }
        self.text = text
        self.names = names
    }

    /// A path of names that another path has: each beginning of a path is a path, and a part of a text in NFC is in NFC.
    private init(checked names: ArraySlice<String>) {
        text = names.joined(separator: "/")
        self.names = Array(names)
    }

    public var description: String { text }

    /// Paths are one when their bytes are: texts that differ in bytes can be equal to Swift, and are two names on a disk.
    public static func == (left: Self, right: Self) -> Bool {
        left.text.utf8.count == right.text.utf8.count && order(left, right) == 0
    }

    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xff as UInt8)
    }

    public static func < (left: Self, right: Self) -> Bool { order(left, right) < 0 }

    /// Compares the bytes in one call: a sync compares and sorts paths far more often than it does anything else with them.
    /// - Returns: A negative number, zero or a positive one, as `memcmp` does.
    private static func order(_ left: Self, _ right: Self) -> Int {
        var (left, right) = (left.text, right.text)
        return left.withUTF8 { left in
            right.withUTF8 { right in
                let count = min(left.count, right.count)
                guard count > 0, let first = left.baseAddress, let second = right.baseAddress else {
                    return left.count - right.count
                }
                let order = Int(memcmp(first, second, count))
                return order == 0 ? left.count - right.count : order
            }
        }
    }

    /// The paths of the folders that it is in, the outermost first.
    var folders: [FolderPath] {
        (1..<max(names.count, 1)).map { FolderPath(checked: names.prefix($0)) }
    }

    /// Of a text that anybody has chosen what can be part of a name, and leaves room for more.
    static func words(of text: String) -> String {
        let scalars = text.precomposedStringWithCanonicalMapping.unicodeScalars.map { scalar -> Unicode.Scalar in
            scalar == "/" || scalar == "\u{fffd}" || scalar.value < 32 ? " " : scalar
        }
        return String(String.UnicodeScalarView(scalars)).shortened(toBytes: 64)
    }

    /// The same place with `suffix` after the name: `a/b (suffix).txt`. Where such a path would be too long, in the nearest
    /// of its folders that has room for it.
    /// - Parameter suffix: At most 200 bytes, of what ``words(of:)`` makes of others' words.
    func suffixed(_ suffix: String) -> FolderPath { named(stem, suffix) }

    /// The same place as a conflict: `a/b (conflict, words).txt`, also when it is one already. A conflict of a conflict is one
    /// of the file that both are of, and names that only grow would end as names that nobody can read.
    func conflicting(_ words: String) -> FolderPath {
        var stem = stem
        while stem.last == ")", let mark = stem.range(of: Self.mark, options: .backwards),
            mark.lowerBound > stem.startIndex, Self.isOwn(stem[mark.upperBound...].dropLast())
        {
            stem = String(stem[..<mark.lowerBound])
        }
        return named(stem, "conflict, \(words)")
    }

    private static let mark = " (conflict, "

    /// Returns whether the words of a conflict are the kit's: an id or its beginning, a number, or a device with a day and
    /// perhaps a number or an id. Others are part of the name that a person has chosen.
    private static func isOwn(_ words: Substring) -> Bool {
        let parts = words.split(separator: ", ", omittingEmptySubsequences: false)
        if parts.count == 1 { return isID(parts[0]) || !words.isEmpty && words.utf8.allSatisfy(isDigit) }
        func isDay(_ text: Substring) -> Bool {
            let numbers = text.split(separator: "-", omittingEmptySubsequences: false)
            return numbers.map(\.utf8.count) == [4, 2, 2] && numbers.allSatisfy { $0.utf8.allSatisfy(isDigit) }
        }
        if isDay(parts[parts.count - 1]) { return true }
        let last = parts[parts.count - 1]
        return parts.count > 2 && isDay(parts[parts.count - 2])
            && (isID(last) || !last.isEmpty && last.utf8.allSatisfy(isDigit))
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isID(_ text: Substring) -> Bool {
        ItemID(String(text)) != nil || text.utf8.count == 8 && UInt32(text, radix: 16) != nil
    }

    /// Whether the name ends with the mark of a conflict that the kit has made.
    private static func isMarked(_ name: String) -> Bool {
        guard name.last == ")", let mark = name.range(of: mark, options: .backwards) else { return false }
        return isOwn(name[mark.upperBound...].dropLast())
    }

    /// From the last dot of the name on. A dot at the beginning hides a file, and one in a device's name is no end either.
    private var ending: String {
        let name = names[names.count - 1]
        if Self.isMarked(name) { return "" }
        let dot = name.dropFirst().lastIndex(of: ".")
        return dot.map { String(name[$0...]) }.flatMap { $0.utf8.count <= 32 ? $0 : nil } ?? ""
    }

    private var stem: String { String(names[names.count - 1].dropLast(ending.count)) }

    private func named(_ stem: String, _ suffix: String) -> FolderPath {
        let addition = " (\(suffix))\(ending)"
        for depth in stride(from: names.count - 1, through: 0, by: -1) {
            let folders = names.prefix(depth)
            let room = min(Self.nameLimit, Self.limit - folders.reduce(0) { $0 + $1.utf8.count + 1 })
            guard addition.utf8.count < room else { continue }
            let name = stem.shortened(toBytes: room - addition.utf8.count) + addition
            if let path = try? FolderPath((folders + [name]).joined(separator: "/")) { return path }
        }
        preconditionFailure("a suffix has room in a name")
    }
}

extension String {
    /// The text without as many characters at its end as are too many.
    func shortened(toBytes limit: Int) -> String {
        var text = self
        while text.utf8.count > limit { text.removeLast() }
        return text
    }
}
