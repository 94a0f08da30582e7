internal import Cryptography
public import Postgres

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
    case destinationCreated = "destination_created"
    case destinationRotated = "destination_rotated"
    case destinationRemoved = "destination_removed"
    case eventsRetried = "events_retried"
    case eventsDropped = "events_dropped"
    case serviceCreated = "service_created"
    case serviceRemoved = "service_removed"
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

extension AuditEntry {
    /// Computes the row's hash: SHA-256 of the previous row's hash and all columns.
    ///
    /// Numbers are big-endian. A text follows its length in bytes of UTF-8 (4 bytes), so different rows never have
    /// equal bytes. The input consists of:
    ///
    /// - previous hash (32 bytes)
    /// - sequence (8 bytes)
    /// - microseconds since 2000-01-01 UTC (8 bytes)
    /// - actor
    /// - action
    /// - account: a zero byte, or a one and its 16 bytes
    /// - detail, with a length of -1 if absent
    ///
    /// ``AppendAudit`` computes the same in the database.
    var computedHash: AuditHash {
        var message = previousHash.digest.bytes
        message.append(bigEndian: sequence)
        message.append(bigEndian: occurredAt.microsecondsSince2000)
        message.append(lengthAndText: actor)
        message.append(lengthAndText: action)
        if let targetAccount {
            message.append(1)
            message.append(contentsOf: targetAccount.uuid.bytes)
        } else {
            message.append(0)
        }
        if let detail { message.append(lengthAndText: detail) } else { message.append(bigEndian: -1 as Int32) }
        return AuditHash(SHA256.hash(message))
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
    }

    fileprivate mutating func append(lengthAndText text: String) {
        append(bigEndian: Int32(truncatingIfNeeded: text.utf8.count))
        append(contentsOf: text.utf8)
    }
}

extension AuditEntry: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `audit_log`.
    static let columns: SQLFragment =
        "sequence, occurred_at, actor, action, target_account, detail, previous_hash, hash"

    /// Reads the columns of ``columns``.
    public init(row: inout RowReader) throws(PostgresError) {
        sequence = try row.next()
        occurredAt = try row.next()
        actor = try row.next()
        action = try row.next()
        targetAccount = try row.next()
        detail = try row.next()
        previousHash = try row.next()
        hash = try row.next()
    }
}

/// Appends a row to the audit log and moves the head of its chain. Returns the row's number, or no row if the head is
/// missing.
///
/// `Transaction.record(_:)` sends it as the last statement of the recorded act's transaction. Act and record then
/// commit together, and the head, for which all records wait, is locked only briefly. A waiting record sees the
/// previous one's head. The time is the database's when the head is locked, so times follow the order of numbers.
struct AppendAudit: Statement {
    typealias Row = Int64

    let actor: AuditActor
    let action: AuditAction
    var targetAccount: AccountID?
    /// At most 1,000 characters. It must contain no userid, and nothing else that is deleted with the account.
    var detail: String?

    /// The bytes of ``AuditEntry/computedHash``, from the columns of `h` and the parameters.
    private static let message: SQL<Self> = """
        h.hash || int8send(h.sequence + 1) || timestamptz_send(h.occurred_at)
        || int4send(octet_length(convert_to(\(\.actor.name), 'UTF8'))) || convert_to(\(\.actor.name), 'UTF8')
        || int4send(octet_length(convert_to(\(\.action.rawValue), 'UTF8'))) || convert_to(\(\.action.rawValue), 'UTF8')
        || coalesce('\\x01'::bytea || uuid_send(\(\.targetAccount)), '\\x00'::bytea)
        || coalesce(int4send(octet_length(convert_to(\(\.detail), 'UTF8'))) || convert_to(\(\.detail), 'UTF8'),
            int4send(-1))
        """

    static let sql: SQL<Self> = """
        WITH locked AS MATERIALIZED (
            SELECT h.sequence, h.hash FROM saltern.audit_head h WHERE h.singleton FOR UPDATE
        ), head AS MATERIALIZED (
            SELECT l.sequence, l.hash, clock_timestamp() AS occurred_at FROM locked l
        ), entry AS (
            SELECT h.sequence + 1 AS sequence, h.occurred_at, h.hash AS previous_hash, sha256(\(message)) AS hash
            FROM head h
        ), appended AS (
            INSERT INTO saltern.audit_log
                (sequence, occurred_at, actor, action, target_account, detail, previous_hash, hash)
            SELECT e.sequence, e.occurred_at, \(\.actor.name), \(\.action.rawValue), \(\.targetAccount), \(\.detail),
                e.previous_hash, e.hash FROM entry e
        )
        UPDATE saltern.audit_head h SET sequence = e.sequence, hash = e.hash FROM entry e
        WHERE h.singleton
        RETURNING h.sequence
        """
}

extension Transaction {
    /// Records the act of the transaction. It must be the last statement, because all other records wait until the
    /// commit.
    ///
    /// - Throws: ``AuditLogUnusable`` if the log cannot record it; the transaction must then not commit.
    func record(_ act: AppendAudit) async throws {
        guard try await execute(act).first != nil else { throw AuditLogUnusable() }
    }
}

/// The error of an audit log whose head was removed.
struct AuditLogUnusable: Error, CustomStringConvertible {
    var description: String { "the head of the audit log is missing; see saltern audit verify" }
}
