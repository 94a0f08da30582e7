/// A universally unique identifier (RFC 9562): sixteen bytes held inline, in PostgreSQL's sort order of `uuid`.
public struct UUID: Sendable, Hashable {
    /// The first eight bytes, most significant first.
    public let high: UInt64
    /// The last eight bytes, most significant first.
    public let low: UInt64

    /// The size of a UUID.
    public static let byteCount = 16

    /// The nil UUID (RFC 9562 §5.9), the lowest of all.
    public static let zero = UUID(high: 0, low: 0)

    /// Makes a UUID from two big-endian halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Makes a UUID from sixteen bytes. Returns `nil` for any other count.
    public init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount else { return nil }
        high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    /// Makes a UUID from sixteen bytes. Returns `nil` for any other count.
    public init?(bytes: [UInt8]) {
        guard let uuid = bytes.withUnsafeBytes({ UUID(bytes: $0) }) else { return nil }
        self = uuid
    }

    /// The sixteen bytes.
    public var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            raw.storeBytes(of: high.bigEndian, as: UInt64.self)
            raw.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            count = 16
        }
    }
}

extension UUID: Comparable {
    public static func < (left: UUID, right: UUID) -> Bool {
        left.high == right.high ? left.low < right.low : left.high < right.high
    }
}
