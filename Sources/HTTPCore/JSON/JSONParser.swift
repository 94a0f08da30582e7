/// A strict parser for JSON documents (RFC 8259).
///
/// It refuses what the RFC leaves open or what attackers use: duplicate member names (also when one is written with
/// escapes), bytes that are not UTF-8, a byte order mark, lone surrogates, deep nesting, numbers that do not fit, and
/// anything after the document. Time is linear in the size of the document, also for hostile ones.
public struct JSONParser: Sendable {
    /// How deeply arrays and objects may be nested.
    public var depthLimit: Int
    /// How many members one object may have.
    public var memberLimit: Int
    /// How many bytes one number may have.
    public var numberLengthLimit: Int

    /// Creates a parser with limits; `depthLimit` is in 1...512, because nesting uses the stack.
    public init(depthLimit: Int = 32, memberLimit: Int = 1024, numberLengthLimit: Int = 64) {
        precondition((1...512).contains(depthLimit), "the depth limit is in 1...512")
        self.depthLimit = depthLimit
        self.memberLimit = memberLimit
        self.numberLengthLimit = numberLengthLimit
    }

    /// Parses a whole document. Strings of the result share the memory of `document`.
    public func parse(_ document: [UInt8]) throws(JSONError) -> JSONValue {
        guard document.count <= Int(UInt32.max) else { throw JSONError(.malformed, at: 0) }
        return try document.withUnsafeBufferPointer { bytes throws(JSONError) in
            var reader = JSONReader(bytes: bytes, document: document, limits: self)
            return try reader.readDocument()
        }
    }
}

/// One pass over one document.
struct JSONReader {
    let bytes: UnsafeBufferPointer<UInt8>
    /// The owner of `bytes`, shared with the strings that are found.
    let document: [UInt8]
    let limits: JSONParser
    var position = 0
    var depth = 0

    init(bytes: UnsafeBufferPointer<UInt8>, document: [UInt8], limits: JSONParser) {
        self.bytes = bytes
        self.document = document
        self.limits = limits
    }

    mutating func readDocument() throws(JSONError) -> JSONValue {
        let value = try readValue()
        skipWhitespace()
        guard position == bytes.count else { throw malformed() }
        return value
    }

    func malformed() -> JSONError { JSONError(.malformed, at: position) }

    /// The next byte without moving, or nil at the end.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func skipWhitespace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func readValue() throws(JSONError) -> JSONValue {
        skipWhitespace()
        switch next {
        case ASCII.doubleQuote: return .string(try readString())
        case ASCII.openBrace: return .object(try readObject())
        case ASCII.openBracket: return .array(try readArray())
        case UInt8(ascii: "t"): return try readLiteral("true", .bool(true))
        case UInt8(ascii: "f"): return try readLiteral("false", .bool(false))
        case UInt8(ascii: "n"): return try readLiteral("null", .null)
        default: return try readNumber()
        }
    }

    private mutating func readLiteral(_ text: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        let end = position + text.utf8CodeUnitCount
        guard end <= bytes.count else { throw malformed() }
        for offset in 0..<text.utf8CodeUnitCount where bytes[position + offset] != text.utf8Start[offset] {
            throw malformed()
        }
        position = end
        return value
    }

    /// Steps over `byte`, which must come next after white space.
    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        skipWhitespace()
        guard next == byte else { throw malformed() }
        position += 1
    }

    /// Steps over `byte` if it comes next after white space.
    private mutating func skip(_ byte: UInt8) -> Bool {
        skipWhitespace()
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func descend() throws(JSONError) {
        depth += 1
        guard depth <= limits.depthLimit else { throw JSONError(.tooDeep, at: position) }
        position += 1
    }

    private mutating func readArray() throws(JSONError) -> [JSONValue] {
        try descend()
        defer { depth -= 1 }
        var elements: [JSONValue] = []
        if skip(ASCII.closeBracket) { return elements }
        repeat { elements.append(try readValue()) } while skip(ASCII.comma)
        try expect(ASCII.closeBracket)
        return elements
    }

    private mutating func readObject() throws(JSONError) -> JSONObject {
        try descend()
        defer { depth -= 1 }
        var members: [JSONObject.Member] = []
        var names = JSONNameSet()
        if skip(ASCII.closeBrace) { return JSONObject(unique: members) }
        repeat {
            skipWhitespace()
            let start = position
            guard next == ASCII.doubleQuote else { throw malformed() }
            let name = try readString()
            guard names.insert(name, after: members) else {
                throw JSONError(.duplicateMember, at: start, member: JSONPath.abbreviated(name.string))
            }
            guard members.count < limits.memberLimit else { throw JSONError(.tooManyMembers, at: start) }
            try expect(ASCII.colon)
            members.append(JSONObject.Member(name: name, value: try readValue()))
        } while skip(ASCII.comma)
        try expect(ASCII.closeBrace)
        return JSONObject(unique: members)
    }
}

/// Tells whether a member's name came before: by comparing while there are few, by a hash that an attacker cannot
/// predict (the standard library's is seeded in each process) when there are many.
private struct JSONNameSet {
    private var seen: Set<JSONString> = []

    mutating func insert(_ name: JSONString, after members: [JSONObject.Member]) -> Bool {
        if members.count < 12 { return !members.contains { $0.name == name } }
        if seen.isEmpty { seen = Set(members.map(\.name)) }
        return seen.insert(name).inserted
    }
}
