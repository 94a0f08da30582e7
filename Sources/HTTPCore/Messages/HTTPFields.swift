/// The header fields of a response, in order. The case of names is ignored.
///
/// Response splitting is impossible: names are always tokens, and values have no control characters.
public struct HTTPFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// One field line.
    public struct Field: Sendable, Equatable {
        /// The name as given.
        public let name: String
        /// The value, without control characters.
        public let value: String
    }

    private var fields: [Field] = []

    public init() {}

    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { append(name, value) }
    }

    /// The usual maximum of fields in a reply.
    private static let usualCount = 8

    /// Appends a field line.
    ///
    /// - Parameters:
    ///   - name: A token (RFC 9110 §5.6.2). The program chooses names, so another value is a programming error.
    ///   - value: Control characters, in particular CR, LF and NUL, are replaced by spaces (RFC 9110 §5.5).
    public mutating func append(_ name: String, _ value: String) {
        var name = name
        precondition(name.withUTF8 { ASCII.isToken($0) }, "a field name is a token")
        if fields.isEmpty { fields.reserveCapacity(Self.usualCount) }
        fields.append(Field(name: name, value: Self.withoutControlCharacters(value)))
    }

    /// Appends the lines of other fields, which are already checked.
    public mutating func append(contentsOf other: HTTPFields) {
        fields.append(contentsOf: other.fields)
    }

    /// Replaces all lines named `name` by one.
    public mutating func set(_ name: String, _ value: String) {
        if contains(name) { remove(name) }
        append(name, value)
    }

    /// Removes all lines named `name`.
    public mutating func remove(_ name: String) {
        fields.removeAll { Self.isSame($0.name, name) }
    }

    /// Returns the value of the field. Several lines are joined by a comma and a space (RFC 9110 §5.3).
    public subscript(name: String) -> String? {
        var combined: String?
        for field in fields where Self.isSame(field.name, name) {
            combined = combined.map { $0 + ", " + field.value } ?? field.value
        }
        return combined
    }

    /// Returns the value of each line named `name`, in order.
    public func all(named name: String) -> [String] {
        fields.filter { Self.isSame($0.name, name) }.map(\.value)
    }

    public func contains(_ name: String) -> Bool {
        fields.contains { Self.isSame($0.name, name) }
    }

    /// Compares two field names without regard to the case of A-Z.
    package static func isSame(_ left: String, _ right: String) -> Bool {
        let left = left.utf8
        let right = right.utf8
        guard left.count == right.count else { return false }
        return zip(left, right).allSatisfy { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }

    private static func withoutControlCharacters(_ value: String) -> String {
        func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != ASCII.tab || byte == 0x7F }
        var value = value
        let isClean = value.withUTF8 { bytes in
            for byte in bytes where isControl(byte) { return false }
            return true
        }
        if isClean { return value }
        return String(decoding: value.utf8.map { isControl($0) ? ASCII.space : $0 }, as: UTF8.self)
    }
}

extension HTTPFields: RandomAccessCollection {
    public var startIndex: Int { fields.startIndex }
    public var endIndex: Int { fields.endIndex }
    public subscript(position: Int) -> Field { fields[position] }
}
