internal import Foundation

/// The path of a file from the folder's root: names in NFC with slashes between them. It never leaves the root, nor
/// leads into the kit's own folder.
public struct FolderPath: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The reason for which a text is not a path. Titles come from other devices and are not trusted.
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

    /// The kit's own folder, with marker, trash and incomplete files.
    static let corner = ".saltern"
    private static let nameLimit = 255
    private static let limit = 4_000

    /// The path as text: names in NFC with slashes between them.
    public let text: String
    let names: [String]

    /// Parses a path. The text is normalised to NFC.
    /// - Throws: ``Refusal`` for a text that is not a path within the folder.
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
        // In upper and lower case, because some file systems ignore case; and in inner folders, which may be synced
        // themselves.
        if names.contains(where: { $0.lowercased() == Self.corner }) { throw .reserved }
        self.text = text
        self.names = names
    }

    /// Creates a path from the first names of another path. They are valid, and a part of a text in NFC is in NFC.
    private init(checked names: ArraySlice<String>) {
        text = names.joined(separator: "/")
        self.names = Array(names)
    }

    public var description: String { text }

    /// Compares bytes: texts with different bytes can be equal in Swift, and are two names on a disk.
    public static func == (left: Self, right: Self) -> Bool {
        left.text.utf8.count == right.text.utf8.count && order(left, right) == 0
    }

    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xff as UInt8)
    }

    public static func < (left: Self, right: Self) -> Bool { order(left, right) < 0 }

    /// Compares bytes in one call, because a sync compares and sorts many paths.
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

    /// The paths of the folders above it, the outermost first.
    var folders: [FolderPath] {
        (1..<max(names.count, 1)).map { FolderPath(checked: names.prefix($0)) }
    }

    /// Converts a text from outside into a valid and short part of a name.
    static func words(of text: String) -> String {
        let scalars = text.precomposedStringWithCanonicalMapping.unicodeScalars.map { scalar -> Unicode.Scalar in
            scalar == "/" || scalar == "\u{fffd}" || scalar.value < 32 ? " " : scalar
        }
        return String(String.UnicodeScalarView(scalars)).shortened(toBytes: 64)
    }

    /// Returns the path with `suffix` after the name: `a/b (suffix).txt`. If it would be too long, it is moved to the
    /// nearest folder above that has room.
    /// - Parameter suffix: At most 200 bytes, with texts from outside converted by ``words(of:)``.
    func suffixed(_ suffix: String) -> FolderPath { named(stem, suffix) }

    /// Returns the path of a conflict copy: `a/b (conflict, words).txt`. The mark of an existing conflict is replaced.
    /// Otherwise repeated conflicts would make names unreadable.
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

    /// Returns true when the words of a conflict are the kit's. They are an id or its beginning, a number, or a device
    /// with a day and possibly a number or an id. Other words belong to the name that a user has chosen.
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

    /// Returns true when the name ends with the kit's mark of a conflict.
    private static func isMarked(_ name: String) -> Bool {
        guard name.last == ")", let mark = name.range(of: mark, options: .backwards) else { return false }
        return isOwn(name[mark.upperBound...].dropLast())
    }

    /// The name's part from its last dot on. A dot at the beginning hides a file, and one in a device's name does not
    /// count.
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
    /// Returns the text without the characters at its end that exceed the limit.
    func shortened(toBytes limit: Int) -> String {
        var text = self
        while text.utf8.count > limit { text.removeLast() }
        return text
    }
}

extension FolderPath {
    /// True when a listing without names with a leading dot does not show the file.
    var isHidden: Bool { names.contains { $0.hasPrefix(".") } }
}

/// Converts names of files to text, including those that are not UTF-8.
enum VisibleName {
    /// Returns the name with each byte that is not UTF-8 written as `\xNN`.
    static func text(_ bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var text = ""
        var rest = bytes[...]
        while let first = rest.first {
            // A scalar has at most four bytes.
            let scalar = (1...4).lazy.compactMap { String(validating: rest.prefix($0), as: UTF8.self) }.first
            if let scalar, !scalar.isEmpty {
                text += scalar
                rest = rest.dropFirst(scalar.utf8.count)
            } else {
                let digits = String(first, radix: 16)
                text += "\\x" + (digits.count < 2 ? "0" : "") + digits
                rest = rest.dropFirst()
            }
        }
        return text
    }
}
