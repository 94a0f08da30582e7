public import Postgres
internal import Cryptography

/// An act that the audit log records.
public enum AuditAction: String, Sendable, CaseIterable {
    case accountDeleted = "account_deleted"
    case databaseRestored = "database_restored"
    case databaseBackedUp = "database_backed_up"
    case accountLocked = "account_locked"
    case accountUnlocked = "account_unlocked"
    case sessionsEnded = "sessions_ended"
    case secondFactorRemoved = "second_factor_removed"
    case keyringRestored = "keyring_restored"
    case planAssigned = "plan_assigned"
    case planChanged = "plan_changed"
    case planRemoved = "plan_removed"
    case inviteCreated = "invite_created"
    case inviteRevoked = "invite_revoked"
}

/// One row of the audit log.
public struct AuditEntry: Sendable, Equatable {
    /// 1 for the first row, without gaps.
    public let sequence: Int64
    public let occurredAt: Timestamp
    public let actor: String
    /// The raw value of an ``AuditAction`` of this or another version.
    public let action: String
    public let targetAccount: AccountID?
    public let detail: String?
    /// The hash of the previous row. Zeros for the first row.
    public let previousHash: AuditHash
    public let hash: AuditHash
}

/// The hash of a row in the audit log. Operators note it; it is not secret.
public struct AuditHash: Sendable, Hashable {
    let digest: SHA256Digest

    init(_ digest: SHA256Digest) {
        self.digest = digest
    }

    /// Reads 64 hexadecimal digits.
    public init?(_ text: some StringProtocol) {
        guard let bytes = Hex.decode(text), let digest = SHA256Digest(bytes) else { return nil }
        self.digest = digest
    }
}

extension AuditHash: CustomStringConvertible {
    /// 64 hexadecimal digits.
    public var description: String { Hex.encode(digest) }
}

extension AuditHash: PostgresValue {
    public static var postgresType: PostgresType { .bytea }

    public func encode(to writer: inout ByteWriter) { digest.withUnsafeBytes { writer.write($0) } }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> AuditHash? {
        bytes.flatMap { SHA256Digest($0) }.map(AuditHash.init)
    }
}
