/// A target for bytes: an array, or memory that is zeroed.
public protocol ByteOutput {
    mutating func append(_ byte: UInt8)
    mutating func append(_ bytes: UnsafeRawBufferPointer)
}

extension ByteOutput {
    /// Appends the bytes of a literal.
    public mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends the UTF-8 form of a text.
    public mutating func append(utf8 text: String) {
        var text = text
        // One copy of bytes, also for short strings, which have no memory of their own.
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }
}

extension Array: ByteOutput where Element == UInt8 {
    public mutating func append(_ bytes: UnsafeRawBufferPointer) { append(contentsOf: bytes) }
}

extension ZeroizingBuffer: ByteOutput {}
