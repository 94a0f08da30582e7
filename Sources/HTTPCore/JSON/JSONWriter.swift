/// Writes one JSON document into a byte buffer, without a tree.
///
/// It writes the commas. The caller alternates names and values in objects, and writes exactly one value. `finish()`
/// checks that every object and array is closed.
public struct JSONWriter: Sendable {
    var bytes: ZeroizingBuffer
    private var needsComma = false
    private var depth = 0

    public init(capacity: Int = 256) {
        bytes = ZeroizingBuffer(capacity: capacity)
    }

    /// Returns the document as an array.
    public consuming func finish() -> [UInt8] { Array(finishWiped()) }

    /// Returns the document in memory that is zeroed at its release.
    public consuming func finishWiped() -> ZeroizingBuffer {
        precondition(depth == 0, "every object and array is closed")
        return bytes
    }

    /// Returns the document with a line feed after it.
    public consuming func finishLine() -> ZeroizingBuffer {
        bytes.append(ASCII.lineFeed)
        return finishWiped()
    }

    // MARK: Structure

    /// Writes an object with members that `build` writes.
    public mutating func object<Failure: Error>(
        _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        open(ASCII.openBrace)
        try build(&self)
        close(ASCII.closeBrace)
    }

    /// Writes an array with elements that `build` writes.
    public mutating func array<Failure: Error>(
        _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        open(ASCII.openBracket)
        try build(&self)
        close(ASCII.closeBracket)
    }

    /// Writes a member's name. Its value must follow.
    public mutating func name(_ name: String) {
        string(name)
        bytes.append(ASCII.colon)
        needsComma = false
    }

    mutating func open(_ byte: UInt8) {
        separate()
        bytes.append(byte)
        needsComma = false
        depth += 1
    }

    mutating func close(_ byte: UInt8) {
        bytes.append(byte)
        needsComma = true
        depth -= 1
    }

    private mutating func separate() {
        if needsComma { bytes.append(ASCII.comma) }
        needsComma = true
    }

    // MARK: Values

    public mutating func null() {
        separate()
        bytes.append("null" as StaticString)
    }

    public mutating func bool(_ value: Bool) {
        separate()
        bytes.append((value ? "true" : "false") as StaticString)
    }

    public mutating func integer(_ value: Int64) {
        separate()
        DecimalDigits.append(value, to: &bytes)
    }

    /// Writes a finite number as the shortest text with the same value.
    public mutating func double(_ value: Double) {
        precondition(value.isFinite, "JSON has only finite numbers")
        separate()
        bytes.append(contentsOf: value.description.utf8)
    }

    public mutating func string(_ text: String) {
        separate()
        var text = text
        text.withUTF8 { JSONEscaping.append($0, to: &bytes) }
    }

    public mutating func string(_ text: JSONString) {
        separate()
        text.withUTF8 { JSONEscaping.append($0, to: &bytes) }
    }

    /// Writes bytes that need no escapes, such as base64, as a string. Bytes other than printable ASCII without quote
    /// and backslash are a programming error.
    public mutating func string(plain text: some Collection<UInt8>) {
        separate()
        bytes.append(ASCII.doubleQuote)
        let start = bytes.count
        bytes.append(contentsOf: text)
        requirePlainText(from: start)
        bytes.append(ASCII.doubleQuote)
    }

    /// Writes a string of at most `capacity` bytes in place, for encoders such as base64, without a copy.
    ///
    /// `fill` writes the bytes and returns their number. The rule of ``string(plain:)`` applies.
    public mutating func string(
        plainCapacity capacity: Int, filledBy fill: (UnsafeMutableBufferPointer<UInt8>) -> Int
    ) {
        separate()
        bytes.append(ASCII.doubleQuote)
        let start = bytes.count
        bytes.append(capacity: capacity, filledBy: fill)
        requirePlainText(from: start)
        bytes.append(ASCII.doubleQuote)
    }

    /// Writes a time in the form of RFC 3339, with three digits of the second, in UTC.
    public mutating func timestamp(_ timestamp: UTCTimestamp) {
        separate()
        bytes.append(ASCII.doubleQuote)
        timestamp.append(to: &bytes, fractionDigits: 3)
        bytes.append(ASCII.doubleQuote)
    }

    /// Writes a complete JSON document as a value.
    public mutating func raw(json: some Collection<UInt8>) {
        separate()
        bytes.append(contentsOf: json)
    }

    public mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .bool(let value): bool(value)
        case .integer(let value): integer(value)
        case .double(let value): double(value)
        case .string(let value): string(value)
        case .array(let elements): array { writer in for element in elements { writer.value(element) } }
        case .object(let object):
            self.object { writer in
                for member in object.members {
                    writer.string(member.name)
                    writer.endName()
                    writer.value(member.value)
                }
            }
        }
    }

    private mutating func endName() {
        bytes.append(ASCII.colon)
        needsComma = false
    }

    private func requirePlainText(from start: Int) {
        let end = bytes.withUnsafeBytes { bytes in
            TextScanner.endOfPlainText(in: bytes.assumingMemoryBound(to: UInt8.self), from: start)
        }
        precondition(end == bytes.count, "this text needs no escapes")
    }
}

extension JSONWriter {
    public mutating func member(_ name: String, _ value: String) {
        self.name(name)
        string(value)
    }

    public mutating func member(_ name: String, _ value: Int) {
        self.name(name)
        integer(Int64(value))
    }

    public mutating func member(_ name: String, _ value: Int64) {
        self.name(name)
        integer(value)
    }

    public mutating func member(_ name: String, _ value: Bool) {
        self.name(name)
        bool(value)
    }

    public mutating func member(_ name: String, _ value: UTCTimestamp) {
        self.name(name)
        timestamp(value)
    }

    public mutating func member(_ name: String, _ value: JSONValue) {
        self.name(name)
        self.value(value)
    }

    /// Writes a member with text that needs no escapes, such as base64.
    public mutating func member(_ name: String, plain text: some Collection<UInt8>) {
        self.name(name)
        string(plain: text)
    }

    /// Writes a member with an object that `build` writes.
    public mutating func object<Failure: Error>(
        _ name: String, _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        self.name(name)
        try object(build)
    }

    /// Writes a member with an array that `build` writes.
    public mutating func array<Failure: Error>(
        _ name: String, _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        self.name(name)
        try array(build)
    }
}

/// Writes documents in pieces, because their contents are fetched in pieces.
extension JSONWriter {
    /// Begins an object. ``endObject()`` must follow.
    public mutating func beginObject() { open(ASCII.openBrace) }

    public mutating func endObject() { close(ASCII.closeBrace) }

    /// Begins an array. ``endArray()`` must follow.
    public mutating func beginArray() { open(ASCII.openBracket) }

    public mutating func endArray() { close(ASCII.closeBracket) }

    /// Begins a string with text in pieces that need no escapes, such as base64.
    public mutating func beginPlainString() {
        separate()
        bytes.append(ASCII.doubleQuote)
    }

    /// Writes a piece of at most `capacity` bytes in place. `fill` writes it and returns its length.
    public mutating func continuePlainString(
        capacity: Int, filledBy fill: (UnsafeMutableBufferPointer<UInt8>) -> Int
    ) {
        let start = bytes.count
        bytes.append(capacity: capacity, filledBy: fill)
        requirePlainText(from: start)
    }

    public mutating func endPlainString() { bytes.append(ASCII.doubleQuote) }

    /// The number of bytes that were not taken yet.
    public var count: Int { bytes.count }

    /// Takes the bytes written so far. The document continues after them.
    public mutating func takePiece() -> [UInt8] {
        defer { bytes.removeAll(keepingCapacity: true) }
        return Array(bytes)
    }
}

/// Writes strings as JSON. Quote, backslash and control characters are escaped, other characters stay.
enum JSONEscaping {
    static func append(_ text: UnsafeBufferPointer<UInt8>, to output: inout ZeroizingBuffer) {
        output.append(ASCII.doubleQuote)
        var start = 0
        var position = 0
        while true {
            position = TextScanner.endOfPlainText(in: text, from: position)
            guard position < text.count else { break }
            let byte = text[position]
            if byte < 0x80 {
                output.append(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: text[start..<position])))
                escape(byte, to: &output)
                start = position + 1
            }
            position += 1
        }
        output.append(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: text[start...])))
        output.append(ASCII.doubleQuote)
    }

    private static func escape(_ byte: UInt8, to output: inout ZeroizingBuffer) {
        output.append(ASCII.backslash)
        switch byte {
        case ASCII.doubleQuote, ASCII.backslash: output.append(byte)
        case 0x08: output.append(UInt8(ascii: "b"))
        case 0x09: output.append(UInt8(ascii: "t"))
        case 0x0A: output.append(UInt8(ascii: "n"))
        case 0x0C: output.append(UInt8(ascii: "f"))
        case 0x0D: output.append(UInt8(ascii: "r"))
        default:
            let low = byte & 0x0F
            output.append(UInt8(ascii: "u"))
            output.append(ASCII.zero)
            output.append(ASCII.zero)
            output.append(ASCII.zero + byte >> 4)
            output.append(low < 10 ? ASCII.zero + low : 0x57 + low)
        }
    }
}
