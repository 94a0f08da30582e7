internal import Cryptography
public import Postgres

/// The data of an account that an operator can read: nothing that its owner has sealed.
public struct AccountDescription: Sendable {
    public let id: AccountID
    public let userid: String
    public let plan: String
    public let createdAt: Timestamp
    public let lockedAt: Timestamp?
    public let items: Int64
    public let bytes: Int64
    public let keyringBytes: Int32
    /// The number of kept keyrings that can be restored.
    public let keptKeyrings: Int64
    /// 1 until the first change of the credential.
    public let credentialRevision: Int64
    /// The invite that the account registered with.
    public let inviteID: InviteID?
    /// The last use of a session that is still stored.
    public let lastUsedAt: Timestamp?
    public let sessions: Int64
    public let shares: Int64
    /// The vaults that it owns, and all that it is a member of.
    public let vaults: Int64
    public let memberships: Int64
    public let recoverySetAt: Timestamp?
    /// The time at which one-time codes were confirmed.
    public let secondFactorSince: Timestamp?
    /// Unused recovery codes of the one-time codes.
    public let secondFactorCodes: Int64
    /// Each passkey is a second factor.
    public let passkeys: Int64
    /// The passkeys that also unlock the account without the password.
    public let unlockingPasskeys: Int64
    public let receiptChangedAt: Timestamp?
}

/// An entry of an account's security log.
public struct AccountEvent: Sendable {
    public let occurredAt: Timestamp
    public let kind: String
    public let sessionID: UUID?
    public let deviceName: String?
    /// The number of occurrences and the time of the first one, for counted kinds.
    public let count: Int64?
    public let since: Timestamp?
    /// True while further failures may be added to the count.
    public let isOngoing: Bool

    init(_ entry: SecurityLogEntry) {
        occurredAt = entry.position.moment
        kind = entry.kind
        sessionID = entry.sessionID?.uuid
        deviceName = entry.deviceName
        count = entry.count
        since = entry.since
        isOngoing = entry.isOngoing
    }
}

/// A live session of an account.
public struct AccountSession: Sendable {
    public let id: UUID
    public let deviceName: String?
    public let createdAt: Timestamp
    public let lastUsedAt: Timestamp
    public let expiresAt: Timestamp
}

/// Reads one account for an operator.
public struct AccountInspection {
    private let database: PostgresClient
    private let sessions: SessionPolicy

    /// - Parameters:
    ///   - database: Connects as the schema's owner.
    ///   - sessions: The server's policy, which decides the live sessions.
    public init(database: PostgresClient, sessions: SessionPolicy) {
        self.database = database
        self.sessions = sessions
    }

    /// Returns the account and its KDF iterations.
    ///
    /// - Throws: ``AccountRefusal`` or a `PostgresError`.
    public func describe(
        _ reference: AccountReference, now: Timestamp
    ) async throws -> (account: AccountDescription, iterations: Int32?) {
        let id = try await reference.accountID(in: database)
        let describe = DescribeAccount(accountID: id, now: now, idleSince: now - sessions.idleTimeout)
        guard let account = try await database.execute(describe).first else { throw reference.unknown }
        let login = try await database.execute(FindIterationsOfUserid(userid: account.userid)).first
        return (account, login)
    }

    /// Returns the account's live sessions, oldest first.
    ///
    /// - Throws: ``AccountRefusal`` or a `PostgresError`.
    public func sessions(_ reference: AccountReference, now: Timestamp) async throws -> [AccountSession] {
        let id = try await reference.accountID(in: database)
        // A random hash, because none of the sessions is the operator's own.
        let find = FindSessions(
            tokenHash: TokenHash(SHA256.hash(SecureRandom.bytes(SHA256Digest.byteCount))), now: now,
            idleSince: now - sessions.idleTimeout)
        let (accounts, rows) = try await database.execute(
            Owned(accountID: id, read: FindUserid()), Owned(accountID: id, read: find))
        guard !accounts.isEmpty else { throw reference.unknown }
        return rows.map {
            AccountSession(
                id: $0.id.uuid, deviceName: $0.deviceName, createdAt: $0.createdAt, lastUsedAt: $0.lastUsedAt,
                expiresAt: $0.expiresAt)
        }
    }

    /// Returns the account's security log, latest entry first, as its owner sees it.
    public func events(_ reference: AccountReference, limit: Int) async throws -> [AccountEvent] {
        let id = try await reference.accountID(in: database)
        guard let userid = try await database.execute(Owned(accountID: id, read: FindUserid())).first else {
            throw reference.unknown
        }
        let (rows, installations) = try await database.execute(
            Owned(accountID: id, read: FindSecurityLog(position: .newest, limit: Int64(limit) + 1)),
            ReadInstallation())
        guard let installation = installations.first else { throw InstallationError.missing }
        let subject = AttemptSubjects(secret: installation.decoySecret).userid(userid)
        let counters = try await database.execute(FindAllFailedAttempts(subject: subject))
        let failures = FailureTally.sum(counters.flatMap(\.tallies))
        return SecurityLogPage(rows, failures, behind: .newest, limit: limit).entries.map(AccountEvent.init)
    }
}

/// Reads the description of an account.
struct DescribeAccount: Statement {
    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.account_id, a.userid, a.plan, a.created_at, a.locked_at, a.item_count, a.item_bytes,
            coalesce(octet_length(a.keyring), 0),
            (
                SELECT count(*) FROM saltern.kept_keyrings k
                WHERE k.account_id = \(\.accountID) AND k.keyring IS NOT NULL AND k.expires_at > \(\.now)
            ),
            a.credential_revision, a.invite_id,
            (SELECT max(s.last_used_at) FROM saltern.sessions s WHERE s.account_id = \(\.accountID)),
            (
                SELECT count(*) FROM saltern.sessions s
                WHERE s.account_id = \(\.accountID)
                    AND \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
            ),
            \(ShareCount.sql(of: "\(\.accountID)", at: "\(\.now)")),
            \(MembershipCount.sql(of: "\(\.accountID)")),
            (SELECT r.created_at FROM saltern.recoveries r WHERE r.account_id = \(\.accountID)),
            (SELECT f.confirmed_at FROM saltern.second_factors f WHERE f.account_id = \(\.accountID)),
            (SELECT count(*) FROM saltern.second_factor_codes c WHERE c.account_id = \(\.accountID)),
            (SELECT count(*) FROM saltern.passkeys k WHERE k.account_id = \(\.accountID)),
            (SELECT count(k.unlock_box) FROM saltern.passkeys k WHERE k.account_id = \(\.accountID)),
            (SELECT p.updated_at FROM saltern.receipts p WHERE p.account_id = \(\.accountID))
        FROM saltern.accounts a WHERE a.account_id = \(\.accountID)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountDescription {
        try row.read(AccountDescription.init)
    }
}

/// Finds the KDF iterations of a userid.
struct FindIterationsOfUserid: Statement {
    typealias Row = Int32

    let userid: String

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT l.kdf_iterations FROM saltern.logins l WHERE l.userid = \(\.userid)"
}
