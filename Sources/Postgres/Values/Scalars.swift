extension UUID: PostgresValue, PostgresArrayElement {
    public static var postgresType: PostgresType { .uuid }
    public static var postgresArrayType: PostgresType { .uuidArray }

    public func encode(to writer: inout ByteWriter) {
        writer.write(high)
        writer.write(low)
    }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> UUID? {
        bytes.flatMap { UUID(bytes: $0) }
    }
}

extension Timestamp: PostgresValue, PostgresArrayElement {
    public static var postgresType: PostgresType { .timestamptz }
    public static var postgresArrayType: PostgresType { .timestamptzArray }

    public func encode(to writer: inout ByteWriter) { writer.write(microsecondsSince2000) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> Timestamp? {
        Int64(bigEndianBytes: bytes).map(Timestamp.init(microsecondsSince2000:))
    }
}

extension Int64: PostgresValue, PostgresArrayElement {
    public static var postgresType: PostgresType { .int8 }
    public static var postgresArrayType: PostgresType { .int8Array }
    public func encode(to writer: inout ByteWriter) { writer.write(self) }
    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> Int64? { Int64(bigEndianBytes: bytes) }
}

extension Int32: PostgresValue, PostgresArrayElement {
    public static var postgresType: PostgresType { .int4 }
    public static var postgresArrayType: PostgresType { .int4Array }
    public func encode(to writer: inout ByteWriter) { writer.write(self) }
    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> Int32? { Int32(bigEndianBytes: bytes) }
}

extension Int16: PostgresValue, PostgresArrayElement {
    public static var postgresType: PostgresType { .int2 }
    public static var postgresArrayType: PostgresType { .int2Array }
    public func encode(to writer: inout ByteWriter) { writer.write(self) }
    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> Int16? { Int16(bigEndianBytes: bytes) }
}

extension Bool: PostgresValue, PostgresArrayElement {
    public static var postgresType: PostgresType { .bool }
    public static var postgresArrayType: PostgresType { .boolArray }
    public func encode(to writer: inout ByteWriter) { writer.write(self ? 1 as UInt8 : 0) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> Bool? {
        guard let byte = UInt8(bigEndianBytes: bytes), byte <= 1 else { return nil }
        return byte == 1
    }
}

extension Double: PostgresValue, PostgresArrayElement {
    public static var postgresType: PostgresType { .float8 }
    public static var postgresArrayType: PostgresType { .float8Array }
    public func encode(to writer: inout ByteWriter) { writer.write(bitPattern) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> Double? {
        UInt64(bigEndianBytes: bytes).map(Double.init(bitPattern:))
    }
}

/// PostgreSQL's text cannot contain NUL: the server rejects such a string (SQLSTATE 22021).
extension String: PostgresValue, PostgresArrayElement {
    public static var postgresType: PostgresType { .text }
    public static var postgresArrayType: PostgresType { .textArray }

    public func encode(to writer: inout ByteWriter) {
        var copy = self
        copy.withUTF8 { writer.write(UnsafeRawBufferPointer($0)) }
    }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> String? {
        bytes.flatMap { String(validating: $0, as: UTF8.self) }
    }
}

/// Encodes a case as the text of its raw value.
extension PostgresValue where Self: RawRepresentable, RawValue == String {
    public static var postgresType: PostgresType { .text }

    public func encode(to writer: inout ByteWriter) { rawValue.encode(to: &writer) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> Self? {
        String.decode(bytes).flatMap(Self.init(rawValue:))
    }
}

extension FixedWidthInteger {
    /// Reads an integer of exactly its own size, most significant byte first.
    init?(bigEndianBytes bytes: UnsafeRawBufferPointer?) {
        guard let bytes, bytes.count == MemoryLayout<Self>.size else { return nil }
        self.init(bigEndian: bytes.loadUnaligned(as: Self.self))
    }
}
