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

/// A data type by its object identifier, which is the same on every PostgreSQL server (`pg_type.dat`).
public struct PostgresType: Sendable, Hashable {
    /// The type's `oid` in `pg_type`.
    public let oid: UInt32

    /// A type by its `oid`, for values of types that this module does not define.
    public init(oid: UInt32) { self.oid = oid }

    public static let bool = PostgresType(oid: 16)
    public static let bytea = PostgresType(oid: 17)
    public static let int8 = PostgresType(oid: 20)
    public static let int2 = PostgresType(oid: 21)
    public static let int4 = PostgresType(oid: 23)
    public static let text = PostgresType(oid: 25)
    public static let float8 = PostgresType(oid: 701)
    public static let timestamptz = PostgresType(oid: 1184)
    public static let uuid = PostgresType(oid: 2950)

    public static let boolArray = PostgresType(oid: 1000)
    public static let byteaArray = PostgresType(oid: 1001)
    public static let int2Array = PostgresType(oid: 1005)
    public static let int4Array = PostgresType(oid: 1007)
    public static let textArray = PostgresType(oid: 1009)
    public static let int8Array = PostgresType(oid: 1016)
    public static let float8Array = PostgresType(oid: 1022)
    public static let timestamptzArray = PostgresType(oid: 1185)
    public static let uuidArray = PostgresType(oid: 2951)

    /// The oids of `name`, `bpchar` and `varchar`, which have the same binary format as text.
    private static let textLike: (UInt32, UInt32, UInt32) = (19, 1042, 1043)

    /// Returns true if a column of type `oid` can be read as this type.
    func accepts(_ oid: UInt32) -> Bool {
        oid == self.oid
            || self == .text && (oid == Self.textLike.0 || oid == Self.textLike.1 || oid == Self.textLike.2)
    }
}
