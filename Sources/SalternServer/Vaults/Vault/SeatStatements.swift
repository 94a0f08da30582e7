internal import Postgres

/// The caller's row in a vault, with the vault's latest entry and key.
struct VaultSeat: DecodableRow {
    let memberID: MemberID
    let role: VaultRole
    let keyID: Int32
    let headNumber: Int64
    let headHash: [UInt8]
    let ownerAccount: AccountID
    /// The member that owns the vault by the log, without provisional entries.
    let ownerMember: MemberID
    /// The lowest head with which the member writes: the entry of its role and keys, or of the generation if that is
    /// later.
    let leastHead: Int64
    /// The number of the latest head that the member has seen.
    let seenNumber: Int64

    /// The columns that ``init(row:)`` reads, of the vault `a` and the member `live`.
    static let columns: SQLFragment = """
        live.member_id, live.role, a.key_id, a.head_number, a.head_hash, a.owner_account,
            a.owner_member, greatest(a.generation_number, live.since), live.seen_number
        """

    /// The condition that a membership has not ended.
    static func isLive(_ member: SQLFragment) -> SQLFragment { "\(member).role > 0" }

    init(row: inout RowReader) throws(PostgresError) {
        memberID = try row.next()
        role = VaultRole(rawValue: try row.next()) ?? .ended
        keyID = try row.next()
        headNumber = try row.next()
        headHash = try row.next()
        ownerAccount = try row.next()
        ownerMember = try row.next()
        leastHead = try row.next()
        seenNumber = try row.next()
    }
}

/// Finds the seat of an account in a vault.
struct FindSeat: Statement {
    typealias Row = VaultSeat

    let vaultID: VaultID
    let accountID: AccountID

    static let isReadOnly = true
    static let isPreliminary = true
    static let sql: SQL<Self> = "\(seat)"

    static let seat: SQL<Self> = """
        SELECT \(VaultSeat.columns)
        FROM saltern.vaults a JOIN saltern.vault_members live ON live.vault_id = a.vault_id
        WHERE a.vault_id = \(\.vaultID) AND live.vault_id = \(\.vaultID) AND live.holder = \(\.accountID)
            AND \(VaultSeat.isLive("live"))
        """
}

/// Finds out if an account is a member of a vault. It precedes reads.
struct IsMember: Statement {
    typealias Row = Bool

    let vaultID: VaultID
    let accountID: AccountID

    static let isReadOnly = true
    static let isPreliminary = true
    static let sql: SQL<Self> = """
        SELECT true FROM saltern.vault_members live
        WHERE live.vault_id = \(\.vaultID) AND live.holder = \(\.accountID)
            AND \(VaultSeat.isLive("live"))
        """
}

/// Finds the seat like ``FindSeat``, and locks the vault's row against other writers until the transaction ends.
struct LockVault: Statement {
    typealias Row = VaultSeat

    let find: FindSeat

    static let isPreliminary = true
    static let sql: SQL<Self> = "\(FindSeat.seat, of: \.find) FOR NO KEY UPDATE OF a"
}

/// Keeps the caller's session and account until the transaction ends. Without a live session it fails (SQLSTATE
/// 22012), so the statements behind it in the same transaction change nothing.
///
/// Session and vault can be on two nodes of a cluster, so no statement reads both. The account's row is locked before
/// the session's (``LockOrder``). The end of a session deletes its row, and waits for this lock; a change of the
/// credential, an admin's lock and a deletion wait for the account's.
///
/// The request has the vault's key, so it does not wait for its own account: other members would wait with it. While
/// one of these changes has locked the account or session, it fails as without a session.
struct HoldSession: Statement {
    let caller: Caller

    static let isPreliminary = true
    static let sql: SQL<Self> = """
        SELECT bool_or(held.is_due), 1 / count(*) FROM (
            SELECT \(Caller.isTouchDue, from: \.caller) AS is_due
            FROM saltern.accounts a JOIN saltern.sessions live ON live.account_id = a.account_id
            WHERE \(Caller.isLiveSession, from: \.caller)
                AND a.account_id = \(\.caller.accountID) AND a.locked_at IS NULL
            FOR KEY SHARE OF a SKIP LOCKED FOR KEY SHARE OF live SKIP LOCKED
        ) held
        """

    var bytesInGroup: Int? { 128 }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> LiveSession {
        LiveSession(isTouchDue: try row.next())
    }
}
