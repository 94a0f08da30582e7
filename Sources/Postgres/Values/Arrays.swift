/// A type that can be an element of a PostgreSQL array. `[UInt8]` is no array there but one `bytea`.
public protocol PostgresArrayElement {
    /// The type of an array of these elements.
    static var postgresArrayType: PostgresType { get }
    /// Writes a whole array in binary format.
    static func encodeArray(_ elements: [Self], to writer: inout ByteWriter)
    /// Reads a whole array. Returns `nil` if the bytes are not one.
    static func decodeArray(_ bytes: UnsafeRawBufferPointer) -> [Self]?
}

extension Array: PostgresValue where Element: PostgresArrayElement {
    public static var postgresType: PostgresType { Element.postgresArrayType }

    public func encode(to writer: inout ByteWriter) { Element.encodeArray(self, to: &writer) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> [Element]? {
        bytes.flatMap { Element.decodeArray($0) }
    }
}

extension UInt8: PostgresArrayElement {
    public static var postgresArrayType: PostgresType { .bytea }

    public static func encodeArray(_ elements: [UInt8], to writer: inout ByteWriter) {
        elements.withUnsafeBytes { writer.write($0) }
    }

    public static func decodeArray(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? { [UInt8](bytes) }
}

extension Array: PostgresArrayElement where Element == UInt8 {
    public static var postgresArrayType: PostgresType { .byteaArray }
}

extension Optional: PostgresArrayElement where Wrapped: PostgresArrayElement & PostgresValue {
    public static var postgresArrayType: PostgresType { Wrapped.postgresArrayType }
}

/// The format of `array_send` and `array_recv`: one dimension, or none when the array is empty.
extension PostgresArrayElement where Self: PostgresValue {
    public static func encodeArray(_ elements: [Self], to writer: inout ByteWriter) {
        writer.write(elements.isEmpty ? 0 as Int32 : 1)
        writer.write(elements.contains { $0.isNull } ? 1 as Int32 : 0)
        writer.write(postgresType.oid)
        if elements.isEmpty { return }
        writer.write(Int32(elements.count))
        writer.write(1 as Int32)
        for element in elements {
            let lengthOffset = writer.count
            writer.write(-1 as Int32)
            if element.isNull { continue }
            element.encode(to: &writer)
            writer.overwrite(Int32(writer.count - lengthOffset - 4), at: lengthOffset)
        }
    }

    public static func decodeArray(_ bytes: UnsafeRawBufferPointer) -> [Self]? {
        var cursor = ArrayCursor(bytes: bytes)
        guard let dimensions = cursor.int32(), cursor.int32() != nil, let element = cursor.int32() else { return nil }
        guard postgresType.accepts(UInt32(bitPattern: element)) else { return nil }
        if dimensions == 0 { return cursor.isAtEnd ? [] : nil }
        guard dimensions == 1, let count = cursor.int32(), count >= 0, cursor.int32() != nil else { return nil }
        var elements: [Self] = []
        // Each element needs at least 4 bytes, so an impossible count reserves nothing.
        elements.reserveCapacity(min(Int(count), bytes.count / 4))
        for _ in 0..<count {
            guard let length = cursor.int32(), let slice = cursor.element(length: length) else { return nil }
            guard let value = Self.decode(slice) else { return nil }
            elements.append(value)
        }
        return cursor.isAtEnd ? elements : nil
    }
}

/// Reads the parts of a binary array in order.
private struct ArrayCursor {
    let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { offset == bytes.count }

    mutating func int32() -> Int32? {
        guard bytes.count - offset >= 4 else { return nil }
        defer { offset += 4 }
        return Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self))
    }

    /// Returns the next element's bytes: `.some(nil)` for NULL, `nil` when the bytes end too early.
    mutating func element(length: Int32) -> UnsafeRawBufferPointer?? {
        if length == -1 { return .some(nil) }
        guard length >= 0, bytes.count - offset >= Int(length) else { return nil }
        defer { offset += Int(length) }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + Int(length)])
    }
}
