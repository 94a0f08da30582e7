/// Identifies the rows that a request may lock.
///
/// Requests of one key never use two connections of a process at the same time. So a lock of one account or share
/// blocks at most one connection. Two subjects that share a key by chance merely wait for each other.
public struct RequestKey: Hashable, Sendable {
    /// The kind of subject that a key identifies.
    public enum Kind: UInt8, Sendable {
        case account, vault, vaultLog, share, attemptSubject, userid, invite, session
        /// A client's address or network, for long leases.
        case address
        /// A type of statement, for requests without a key that have met a lock.
        case statement
    }

    private let kind: Kind
    private let high: UInt64
    private let low: UInt64

    /// Makes the key of a subject with a UUID.
    public init(_ kind: Kind, _ id: UUID) {
        self.kind = kind
        high = id.high
        low = id.low
    }

    /// Makes the key of a subject that bytes identify. It contains their hash, which differs between processes.
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

    init(statement type: ObjectIdentifier) {
        kind = .statement
        high = 0
        low = UInt64(UInt(bitPattern: type))
    }
}
