/// A value that is sent to and read from PostgreSQL in binary format.
public protocol PostgresValue: SendableMetatype {
    /// The value's type in PostgreSQL. It is always sent, so the server never infers it.
    static var postgresType: PostgresType { get }

    /// True for NULL. ``encode(to:)`` is not called then.
    var isNull: Bool { get }

    /// Writes the binary format, without a length.
    func encode(to writer: inout ByteWriter)

    /// Reads the binary format; `bytes` is `nil` for NULL and valid only during the call.
    /// - Returns: `nil` if the bytes are not such a value.
    static func decode(_ bytes: UnsafeRawBufferPointer?) -> Self?
}

extension PostgresValue {
    @inlinable public var isNull: Bool { false }
}

extension Optional: PostgresValue where Wrapped: PostgresValue {
    public static var postgresType: PostgresType { Wrapped.postgresType }

    public var isNull: Bool {
        if case .none = self { return true }
        return false
    }

    public func encode(to writer: inout ByteWriter) {
        self?.encode(to: &writer)
    }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> Wrapped?? {
        guard let bytes else { return .some(nil) }
        guard let value = Wrapped.decode(bytes) else { return nil }
        return .some(value)
    }
}
