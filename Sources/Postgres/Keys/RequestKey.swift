/// What a request may wait for in the database: requests of one key are never under way on two connections of a
/// process at once, so one account's or one share's lock holds up one connection at most.
///
/// Two things that share a key by chance take turns, and nothing worse.
public struct RequestKey: Hashable, Sendable {
    /// What kind of thing a key names.
    public enum Kind: UInt8, Sendable {
        case account, share, attemptSubject, userid, invite, session
        /// A client's address or network, for long leases.
        case address
        /// A type of statement, for requests without a key that have met a lock.
        case statement
    }

    private let kind: Kind
    private let high: UInt64
    private let low: UInt64

    /// The key of something that is named by a UUID.
    public init(_ kind: Kind, _ id: UUID) {
        self.kind = kind
        high = id.high
        low = id.low
    }

    /// The key of something that is named by bytes. It holds a hash of them that differs from process to process.
    public init(_ kind: Kind, hashing bytes: some Sequence<UInt8>) {
        self.kind = kind
        var first = Hasher()
        var second = Hasher()
        second.combine(UInt8(1))
        for byte in bytes {
            first.combine(byte)
            second.combine(byte)
        }
        high = UInt64(bitPattern: Int64(first.finalize()))
        low = UInt64(bitPattern: Int64(second.finalize()))
    }

    /// The key of a type of statement.
    init(statement type: ObjectIdentifier) {
        kind = .statement
        high = 0
        low = UInt64(UInt(bitPattern: type))
    }
}
