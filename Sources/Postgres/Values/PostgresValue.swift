/// A value that travels to and from PostgreSQL in its binary format.
public protocol PostgresValue: SendableMetatype {
    /// The type that the value has in PostgreSQL; never left to the server's guess.
    static var postgresType: PostgresType { get }

    /// Whether the value is NULL; then ``encode(to:)`` is not called.
    var isNull: Bool { get }

    /// Writes the binary format, without a length.
    func encode(to writer: inout ByteWriter)

    /// Reads the binary format; `bytes` is `nil` for NULL and valid only during the call.
    /// - Returns: `nil` when these bytes are no such value.
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
