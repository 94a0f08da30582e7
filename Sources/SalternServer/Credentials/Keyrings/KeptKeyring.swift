internal import HTTPCore
internal import Postgres

/// An account's keyring and recovery keyring from before a request replaced them.
struct KeptKeyring: Sendable {
    let id: KeptKeyringID
    /// Nil if the account had none.
    let keyring: [UInt8]?
    /// The revision of ``keyring``, 0 without one.
    let revision: Int64
    /// The recovery keyring. Nil without one, and after the recovery code was replaced.
    let recoveryKeyring: [UInt8]?
    /// True if the request that replaced them had the password key. What a restore replaces inherits the restored one's
    /// value.
    let isProven: Bool
    let replacedAt: Timestamp
    /// The time of its removal.
    let expiresAt: Timestamp

    /// The limit of keyrings that were replaced without the password key. Further ones are not kept, so that a stolen
    /// session cannot displace an earlier one.
    static let unprovenLimit: Int64 = 4
    /// The minimum retention in days. Plans with a higher `deletedDays` use that.
    static let shortestRetention: Int32 = 30

    /// Writes its members in a list.
    func write(to writer: inout JSONWriter) {
        if let keyring {
            writer.member("keyring", base64: keyring)
            writer.member("revision", revision)
        }
        if let recoveryKeyring { writer.member("recoveryKeyring", base64: recoveryKeyring) }
        writer.member("withPasswordKey", isProven)
        writer.member("replacedAt", replacedAt)
        writer.member("expiresAt", expiresAt)
    }
}

/// Identifies a kept keyring.
typealias KeptKeyringID = Identifier<KeptKeyring>

/// The keyrings that a request is about to replace.
struct ReplaceableKeyrings: Sendable {
    /// Nil if the account has none.
    let keyring: [UInt8]?
    let revision: Int64
    /// The recovery keyring. Nil without one.
    let recoveryKeyring: [UInt8]?
    /// The plan's retention of deleted items in days.
    let deletedDays: Int32
    /// The number of kept keyrings that were replaced without the password key.
    let unprovenCount: Int64
}

extension Transaction {
    /// Returns the keyrings that a request is about to replace. The account's row must be locked.
    func replaceableKeyrings(
        of accountID: AccountID, now: Timestamp
    ) async throws(PostgresError) -> ReplaceableKeyrings? {
        try await execute(Owned(accountID: accountID, read: FindReplaceableKeyrings(now: now))).first
    }

    /// Keeps the replaced keyrings, unless ``KeptKeyring/unprovenLimit`` are kept already. The latest one that was
    /// replaced with the password key has a slot of its own.
    func keep(
        _ replaced: ReplaceableKeyrings, of accountID: AccountID, isProven: Bool, now: Timestamp
    ) async throws(PostgresError) {
        guard isProven || replaced.unprovenCount < KeptKeyring.unprovenLimit,
            let kept = replaced.kept(isProven: isProven, now: now)
        else { return }
        _ = try await execute(
            DropKeptKeyrings(accountID: accountID, now: now, dropsProven: isProven),
            InsertKeptKeyring(accountID: accountID, kept: kept))
    }

    /// Keeps the replaced keyrings in the slot of a restored one. All others stay, so another one can be restored
    /// later.
    func keep(
        _ replaced: ReplaceableKeyrings, inPlaceOf restored: KeptKeyring, of accountID: AccountID, now: Timestamp
    ) async throws(PostgresError) {
        _ = try await execute(RemoveKeptKeyring(accountID: accountID, id: restored.id))
        guard let kept = replaced.kept(isProven: restored.isProven, now: now) else { return }
        _ = try await execute(InsertKeptKeyring(accountID: accountID, kept: kept))
    }
}

extension ReplaceableKeyrings {
    /// Returns the form to keep. Nil if there is nothing to keep.
    fileprivate func kept(isProven: Bool, now: Timestamp) -> KeptKeyring? {
        guard keyring != nil || recoveryKeyring != nil else { return nil }
        let days = max(deletedDays, KeptKeyring.shortestRetention)
        return KeptKeyring(
            id: .random(), keyring: keyring, revision: revision, recoveryKeyring: recoveryKeyring, isProven: isProven,
            replacedAt: now, expiresAt: now + .seconds(86_400 * Int64(days)))
    }
}

/// `GET /v1/account/keyring/kept`: lists the caller's replaced keyrings that can be restored.
///
/// Like the keyring itself, they need only a session: they are sealed with the same password.
struct ListKeptKeyrings: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let kept = try await authorization.read(FindKeptKeyrings(now: authorization.now))
        let sealedCount = kept.reduce(0) { $0 + ($1.keyring?.count ?? 0) + ($1.recoveryKeyring?.count ?? 0) }
        return .json(capacity: 64 + 192 * kept.count + sealedCount * 4 / 3) { writer in
            writer.object { writer in
                writer.array("keyrings") { writer in
                    for keyring in kept { writer.object { keyring.write(to: &$0) } }
                }
            }
        }
    }
}

/// Finds the account's keyring and recovery keyring, and the numbers that decide if they are kept.
struct FindReplaceableKeyrings: AccountRead {
    typealias Row = ReplaceableKeyrings

    let now: Timestamp

    static let sql: AccountSQL<Self> = """
        SELECT a.keyring, a.keyring_revision,
            (SELECT r.keyring FROM saltern.recoveries r WHERE r.account_id = \(.account)),
            p.deleted_days,
            (
                SELECT count(*) FROM saltern.kept_keyrings k
                WHERE k.account_id = \(.account) AND NOT k.proven AND k.expires_at > \(\.now)
            )
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the account's kept keyrings that have not expired, in the order of their replacement.
struct FindKeptKeyrings: AccountRead {
    typealias Row = KeptKeyring

    let now: Timestamp

    static let sql: AccountSQL<Self> = """
        SELECT k.kept_id, k.keyring, k.keyring_revision, k.recovery_keyring, k.proven, k.replaced_at, k.expires_at
        FROM saltern.kept_keyrings k
        WHERE k.account_id = \(.account) AND k.expires_at > \(\.now)
        ORDER BY k.replaced_at, k.keyring_revision, k.kept_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Stores a kept keyring. The account's row must be locked.
struct InsertKeptKeyring: Statement {
    let accountID: AccountID
    let kept: KeptKeyring

    static let sql: SQL<Self> = """
        INSERT INTO saltern.kept_keyrings
            (account_id, kept_id, keyring, keyring_revision, recovery_keyring, proven, replaced_at, expires_at)
            VALUES (\(\.accountID), \(\.kept.id), \(\.kept.keyring), \(\.kept.revision), \(\.kept.recoveryKeyring),
                \(\.kept.isProven), \(\.kept.replacedAt), \(\.kept.expiresAt))
        """
}

/// Removes an account's expired kept keyrings, and those that were replaced with the password key if another one takes
/// their slot.
struct DropKeptKeyrings: Statement {
    let accountID: AccountID
    let now: Timestamp
    let dropsProven: Bool

    static let sql: SQL<Self> = """
        DELETE FROM saltern.kept_keyrings k
        WHERE k.account_id = \(\.accountID) AND (k.expires_at <= \(\.now) OR k.proven AND \(\.dropsProven))
        """
}

/// Removes all kept keyrings of an account, because a credential or data keys that they depend on were replaced.
struct RemoveKeptKeyrings: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.kept_keyrings k WHERE k.account_id = \(\.accountID)"
}

/// Removes the recovery keyrings of an account's kept keyrings, because the recovery code was replaced or removed.
struct RemoveKeptRecoveryKeyrings: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.kept_keyrings d WHERE d.account_id = \(\.accountID) AND d.keyring IS NULL
        )
        UPDATE saltern.kept_keyrings k SET recovery_keyring = NULL
        WHERE k.account_id = \(\.accountID) AND k.keyring IS NOT NULL AND k.recovery_keyring IS NOT NULL
        """
}

/// Finds expired kept keyrings of all accounts, earliest expiry first, by the index `kept_keyrings_by_expiry`.
struct FindExpiredKeyrings: Statement {
    typealias Row = DueRow<KeptKeyringID>

    let now: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT k.account_id, k.kept_id FROM saltern.kept_keyrings k
        WHERE k.expires_at <= \(\.now) AND k.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY k.expires_at LIMIT \(\.limit)
        """
}

/// Removes expired kept keyrings of an account. Returns their number.
struct RemoveExpiredKeyrings: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let now: Timestamp
    let ids: [KeptKeyringID]

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.kept_keyrings k
            WHERE k.account_id = \(\.accountID) AND k.kept_id = ANY(\(\.ids)::uuid[]) AND k.expires_at <= \(\.now)
            RETURNING k.kept_id
        )
        SELECT count(*) FROM gone g
        """
}

/// Finds the expiry times of kept keyrings, by the index `kept_keyrings_by_expiry`.
struct FindDueKeyrings: OldestRows {
    static let kind = "keyrings"
    static let time: SQLFragment = "k.expires_at"
    static let table: SQLFragment = "saltern.kept_keyrings k"

    let moment: Timestamp
    let limit: Int64
}

/// Removes one kept keyring.
struct RemoveKeptKeyring: Statement {
    let accountID: AccountID
    let id: KeptKeyringID

    static let sql: SQL<Self> = """
        DELETE FROM saltern.kept_keyrings k WHERE k.account_id = \(\.accountID) AND k.kept_id = \(\.id)
        """
}

/// The statements of kept keyrings.
extension StatementList {
    static var keptKeyrings: [any Statement.Type] {
        [
            Owned<FindReplaceableKeyrings>.self, Owned<FindKeptKeyrings>.self, InsertKeptKeyring.self,
            DropKeptKeyrings.self, RemoveKeptKeyrings.self, RemoveKeptRecoveryKeyrings.self, RemoveKeptKeyring.self,
            RestoreKeyring.self, RestoreRecoveryKeyring.self,
        ]
    }
}
