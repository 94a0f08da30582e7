/// Writes one JSON document into a byte buffer, without a tree in between.
///
/// Commas are its own business. That names and values alternate in objects and that exactly one value is written is
/// the caller's; `finish()` checks that every object and array was closed.
public struct JSONWriter: Sendable {
    var bytes: ZeroizingBuffer
    private var needsComma = false
    private var depth = 0

    public init(capacity: Int = 256) {
        bytes = ZeroizingBuffer(capacity: capacity)
    }

    /// The document, for readers who keep arrays.
    public consuming func finish() -> [UInt8] { Array(finishWiped()) }

    /// The document, in memory that is zeroed when it is given back.
    public consuming func finishWiped() -> ZeroizingBuffer {
        precondition(depth == 0, "every object and array is closed")
        return bytes
    }

    /// The document and a line feed behind it.
    public consuming func finishLine() -> ZeroizingBuffer {
        bytes.append(ASCII.lineFeed)
        return finishWiped()
    }

    // MARK: Structure

    /// Writes an object whose members `build` writes.
    public mutating func object<Failure: Error>(
        _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        open(ASCII.openBrace)
        try build(&self)
        close(ASCII.closeBrace)
    }

    /// Writes an array whose elements `build` writes.
    public mutating func array<Failure: Error>(
        _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        open(ASCII.openBracket)
        try build(&self)
        close(ASCII.closeBracket)
    }

    /// Writes a member's name; its value must follow.
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

    mutating func separate() {
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

    /// Writes the shortest text that reads back as the same number, which must be finite.
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

    /// Writes bytes that need no escapes, such as base64, as a string. Anything but printable ASCII without quote and
    /// backslash is a programming error.
    public mutating func string(plain text: some Collection<UInt8>) {
        separate()
        bytes.append(ASCII.doubleQuote)
        let start = bytes.count
        bytes.append(contentsOf: text)
        requirePlainText(from: start)
        bytes.append(ASCII.doubleQuote)
    }

    /// Writes a string of at most `capacity` bytes that `fill` puts in place, for encoders such as base64: no copy is
    /// made. `fill` returns how many bytes it wrote; they obey the rule of ``string(plain:)``.
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

    /// Writes a point in time in RFC 3339, always with three digits of the second and always in UTC.
    public mutating func timestamp(_ timestamp: UTCTimestamp) {
        separate()
        bytes.append(ASCII.doubleQuote)
        timestamp.append(to: &bytes, fractionDigits: 3)
        bytes.append(ASCII.doubleQuote)
    }

    /// Writes a document that is JSON already.
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

    func requirePlainText(from start: Int) {
        let end = bytes.withUnsafeBytes { bytes in
            TextScanner.endOfPlainText(in: bytes.assumingMemoryBound(to: UInt8.self), from: start)
        }
        precondition(end == bytes.count, "this text needs no escapes")
    }
}
