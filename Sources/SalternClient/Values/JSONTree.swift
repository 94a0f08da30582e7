internal import Foundation

/// A JSON text (RFC 8259) as a tree. Numbers and strings keep their original characters, so that no digit is lost.
indirect enum JSONTree: Sendable {
    case object([MemberName: JSONTree])
    case array([JSONTree])
    /// A string: its value, and its characters with quotation marks and escapes.
    case string(String, raw: [UInt8])
    /// A number, `true`, `false` or `null`.
    case literal([UInt8])

    /// The depth limit of JSONDecoder.
    private static let depthLimit = 512

    /// Parses a text. Of members with one name the last one counts.
    /// - Returns: nil for anything but JSON in UTF-8.
    init?(_ text: [UInt8]) {
        var reader = Reader(text: text)
        guard let tree = reader.value(depth: 0), reader.isAtEnd else { return nil }
        self = tree
    }

    /// The text, with the members of objects sorted by name.
    var text: [UInt8] {
        var text: [UInt8] = []
        append(to: &text)
        return text
    }

    var members: [MemberName: JSONTree]? { if case .object(let members) = self { members } else { nil } }

    private func append(to text: inout [UInt8]) {
        switch self {
        case .object(let members):
            text.append(UInt8(ascii: "{"))
            for (index, name) in members.keys.sorted().enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                text += Self.quoted(name.utf8) + [UInt8(ascii: ":")]
                members[name]?.append(to: &text)
            }
            text.append(UInt8(ascii: "}"))
        case .array(let elements):
            text.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                element.append(to: &text)
            }
            text.append(UInt8(ascii: "]"))
        case .string(_, let raw), .literal(let raw): text += raw
        }
    }

    private static func quoted(_ name: [UInt8]) -> [UInt8] {
        var quoted = [UInt8(ascii: "\"")]
        for byte in name {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): quoted += [UInt8(ascii: "\\"), byte]
            case 0..<0x20:
                quoted +=
                    Array("\\u00".utf8) + Array(String(byte >> 4, radix: 16).utf8)
                    + Array(String(byte & 15, radix: 16).utf8)
            default: quoted.append(byte)
            }
        }
        return quoted + [UInt8(ascii: "\"")]
    }

    // MARK: Reading

    private struct Reader {
        let text: [UInt8]
        var position = 0

        init(text: [UInt8]) {
            self.text = text
            // A byte order mark, which JSONDecoder accepts.
            if text.starts(with: [0xef, 0xbb, 0xbf]) { position = 3 }
        }

        private var next: UInt8? { position < text.count ? text[position] : nil }

        var isAtEnd: Bool {
            mutating get {
                skipSpace()
                return position == text.count
            }
        }

        private mutating func skipSpace() {
            while let byte = next, [0x20, 0x09, 0x0a, 0x0d].contains(byte) { position += 1 }
        }

        private mutating func take(_ byte: UInt8) -> Bool {
            skipSpace()
            guard next == byte else { return false }
            position += 1
            return true
        }

        mutating func value(depth: Int) -> JSONTree? {
            skipSpace()
            guard depth < JSONTree.depthLimit, let first = next else { return nil }
            switch first {
            case UInt8(ascii: "{"): return object(depth)
            case UInt8(ascii: "["): return array(depth)
            case UInt8(ascii: "\""): return string().map { .string($0.value, raw: $0.raw) }
            default:
                let begin = position
                while let byte = next, (0x2b...0x7a).contains(byte), byte != UInt8(ascii: ","),
                    ![UInt8(ascii: "]"), UInt8(ascii: ":"), UInt8(ascii: "[")].contains(byte)
                {
                    position += 1
                }
                return position > begin ? .literal(Array(text[begin..<position])) : nil
            }
        }

        private mutating func object(_ depth: Int) -> JSONTree? {
            position += 1
            var members: [MemberName: JSONTree] = [:]
            if take(UInt8(ascii: "}")) { return .object(members) }
            while true {
                skipSpace()
                guard let name = string(), take(UInt8(ascii: ":")), let value = value(depth: depth + 1) else {
                    return nil
                }
                members[MemberName(name.value)] = value
                if take(UInt8(ascii: "}")) { return .object(members) }
                guard take(UInt8(ascii: ",")) else { return nil }
            }
        }

        private mutating func array(_ depth: Int) -> JSONTree? {
            position += 1
            var elements: [JSONTree] = []
            if take(UInt8(ascii: "]")) { return .array(elements) }
            while true {
                guard let value = value(depth: depth + 1) else { return nil }
                elements.append(value)
                if take(UInt8(ascii: "]")) { return .array(elements) }
                guard take(UInt8(ascii: ",")) else { return nil }
            }
        }

        private mutating func string() -> (value: String, raw: [UInt8])? {
            guard next == UInt8(ascii: "\"") else { return nil }
            let begin = position
            position += 1
            var hasEscapes = false
            while let byte = next, byte != UInt8(ascii: "\"") {
                if byte == UInt8(ascii: "\\") {
                    hasEscapes = true
                    position += 1
                }
                position += 1
            }
            guard next == UInt8(ascii: "\"") else { return nil }
            position += 1
            let raw = Array(text[begin..<position])
            if hasEscapes {
                guard let value = try? JSONDecoder().decode(String.self, from: Data(raw)) else { return nil }
                return (value, raw)
            }
            return String(strictUTF8: raw.dropFirst().dropLast()).map { ($0, raw) }
        }
    }
}

/// Equality ignores the order of members and the escapes in strings.
extension JSONTree: Equatable {
    static func == (left: JSONTree, right: JSONTree) -> Bool {
        switch (left, right) {
        case (.object(let left), .object(let right)): left == right
        case (.array(let left), .array(let right)): left == right
        case (.string(let left, _), .string(let right, _)): Array(left.utf8) == Array(right.utf8)
        case (.literal(let left), .literal(let right)): left == right
        default: false
        }
    }
}

/// The name of a member of a JSON object.
///
/// Two names are equal when their UTF-8 is equal (RFC 8259 section 8.3). `String` also considers canonically equivalent
/// texts equal, so a dictionary with such keys would lose one of two members.
struct MemberName: Hashable, Sendable, Comparable {
    let utf8: [UInt8]

    init(_ text: String) { utf8 = Array(text.utf8) }

    static func < (left: MemberName, right: MemberName) -> Bool { left.utf8.lexicographicallyPrecedes(right.utf8) }
}

extension [MemberName: JSONTree] {
    subscript(name: String) -> JSONTree? {
        get { self[MemberName(name)] }
        set { self[MemberName(name)] = newValue }
    }
}
