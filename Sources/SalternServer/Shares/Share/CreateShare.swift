internal import Cryptography
internal import HTTPCore
internal import Postgres

/// `POST /v1/shares`: stores a sealed payload behind a new link.
///
/// A share has two rows: links are unique in one table, and accounts count their shares in another. The second row is
/// written only if the first was, in the same transaction.
struct CreateShare: AccountEndpoint, OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let policy: SharePolicy

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        policy = parts.configuration.shares
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let now = authorization.now
        let content = try await ShareContent(request, now: now)
        let id = ShareID.random()
        let token = ManageToken()
        let byteCount = content.sealed.bytes.count
        let account = authorization.accountID
        let admission = AdmitShare(byteCount: Int64(byteCount))
        let note = InsertAccountShare(
            admission: admission, accountID: account, id: id, now: now, expiresAt: content.expiresAt)
        let write = InsertShare(account: account, id: id, manageHash: token.hash, content: content, now: now)
        func create() async throws -> AdmitShare.Row? {
            try await authorization.write(admission, followedBy: note, write, of: byteCount).first.first
        }
        var noted = try await create()
        if noted?.hasEndedShares == true {
            try await authorization.transaction { transaction in
                try await AccountShares.removeEnded(of: account, at: now, in: transaction)
            }
            noted = try await create()
        }
        guard let share = noted else { throw Unauthenticated() }
        if let limit = share.exceededLimit {
            throw ItemProblem.quotaExceeded(limit: limit, allowed: share.allowed, used: share.used)
        }
        return Self.reply(ShareHeader(id: id, content: content, now: now), token)
    }

    /// Creates a share without an account. The route accepts it only if the policy allows it.
    func respond(to request: Request) async throws -> Response {
        let now = clock.now
        let content = try await ShareContent(request, now: now)
        try content.checkAnonymous(now: now)
        let id = ShareID.random()
        let token = ManageToken()
        let note = InsertAnonymousShare(
            id: id, now: now, expiresAt: content.expiresAt, limit: Int64(policy.anonymousLimit))
        let write = InsertShare(account: .nobody, id: id, manageHash: token.hash, content: content, now: now)
        func create() async throws -> Bool {
            try await database.execute(note, RefuseAnonymousShare(note: note), write, key: .share(id)).1.isEmpty
        }
        var isCreated = try await create()
        if !isCreated {
            try await database.withTransaction(key: .account(.nobody)) { transaction in
                try await AccountShares.removeEnded(of: .nobody, at: now, in: transaction)
            }
            isCreated = try await create()
        }
        guard isCreated else { throw ShareProblem.anonymousClosed }
        return Self.reply(ShareHeader(id: id, content: content, now: now), token)
    }

    private static func reply(_ header: ShareHeader, _ token: ManageToken) -> Response {
        .json(.created, capacity: 512) { writer in
            writer.object { writer in
                header.write(to: &writer)
                token.write("manageToken", to: &writer)
            }
        }
    }
}

/// The token that changes or deletes one share: `slm_` and base64url of 32 random bytes. Only its hash is stored.
struct ManageToken: Sendable {
    private let secret = SecureRandom.secureBytes(secretByteCount)

    static let prefix = "slm_"
    static let secretByteCount = 32

    /// The stored hash.
    var hash: TokenHash { TokenHash(SHA256.hash(secret)) }

    /// Writes the token for the client. No other reply contains it.
    func write(_ name: String, to writer: inout JSONWriter) { writer.member(name, Self.prefix, base64URL: secret) }
}

/// The manage token of a request: the hash, without the secret.
struct PresentedManageToken: Sendable {
    let hash: TokenHash

    /// Reads `Authorization: Bearer slm_…`. Nil if the field is absent, repeated or malformed.
    init?(_ fields: RequestFields) {
        let hash = BearerSecret.read(
            fields, prefix: ManageToken.prefix, byteCount: ManageToken.secretByteCount
        ) { secret in
            TokenHash(SHA256.hash(secret))
        }
        guard let hash else { return nil }
        self.hash = hash
    }
}

/// Checks the plan's limit as the first of three statements of a creation. Ended shares count while they are stored.
///
/// Rows are counted in the order of the index, forced by a limit that the planner cannot estimate. Only an index scan
/// marks dead entries. A bitmap scan would read all rows removed since the last vacuum again at each creation.
struct AdmitShare: AccountWrite {
    let byteCount: Int64
    /// Stored in the account's row if the plan allows the share, as a token for the statements that follow.
    let writer = Int64.random(in: .min ... .max)

    /// The exceeded limit of the plan, if any.
    struct Row: Sendable {
        let exceededLimit: String?
        let allowed: Int64
        let used: Int64
        /// True if ended shares occupy the limit.
        let hasEndedShares: Bool
    }

    static let sql: CallerSQL<Self> = """
        WITH decision AS (
            SELECT a.account_id, p.max_item_bytes, p.max_shares, c.share_count, c.stored_count
            FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan CROSS JOIN (
                SELECT count(*) AS stored_count,
                    count(*) FILTER (WHERE \(ShareCount.condition(at: "\(.now)"))) AS share_count
                FROM (
                    SELECT s.expires_at FROM saltern.account_shares s WHERE s.account_id = \(.account)
                    ORDER BY s.share_id LIMIT (SELECT 1000000000)
                ) h
            ) c
            WHERE a.account_id = \(.account) AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        ), told AS (
            UPDATE saltern.accounts a SET writer = \(\.writer) FROM decision d
            WHERE a.account_id = \(.account) AND \(\.byteCount) <= d.max_item_bytes AND d.stored_count < d.max_shares
        )
        SELECT
            CASE WHEN \(\.byteCount) > d.max_item_bytes THEN 'itemBytes' WHEN d.stored_count >= d.max_shares
                THEN 'shares' END,
            CASE WHEN \(\.byteCount) > d.max_item_bytes THEN d.max_item_bytes ELSE d.max_shares END,
            CASE WHEN \(\.byteCount) > d.max_item_bytes THEN \(\.byteCount) ELSE d.share_count END,
            d.stored_count > d.share_count AND d.stored_count >= d.max_shares AND d.share_count < d.max_shares
        FROM decision d
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Adds the share to the account's list as the second of three statements, if ``AdmitShare`` has admitted it.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct InsertAccountShare: Statement {
    let admission: AdmitShare
    let accountID: AccountID
    let id: ShareID
    let now: Timestamp
    let expiresAt: Timestamp?

    static let sql: SQL<Self> = """
        MERGE INTO saltern.account_shares n USING (
            SELECT a.account_id FROM saltern.accounts a
            WHERE a.account_id = \(\.accountID) AND a.writer = \(\.admission.writer)
        ) d ON n.account_id = d.account_id AND n.share_id = \(\.id)
        WHEN NOT MATCHED THEN INSERT (account_id, share_id, created_at, expires_at)
            VALUES (d.account_id, \(\.id), \(\.now), \(\.expiresAt))
        """
}

/// Lists a share without an account, as the first of three statements of its creation.
struct InsertAnonymousShare: Statement {
    let id: ShareID
    let now: Timestamp
    let expiresAt: Timestamp?
    /// The maximum number of such shares.
    let limit: Int64

    fileprivate var nobody: AccountID { .nobody }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.account_shares (account_id, share_id, created_at, expires_at)
            VALUES (\(\.nobody), \(\.id), \(\.now), \(\.expiresAt))
        """
}

/// Removes the listed share if the limit is exceeded, as the second of three statements. Returns a row if it did.
struct RefuseAnonymousShare: Statement {
    typealias Row = Bool

    let note: InsertAnonymousShare

    static let sql: SQL<Self> = """
        DELETE FROM saltern.account_shares n
        WHERE n.account_id = \(\.note.nobody) AND n.share_id = \(\.note.id) AND \(\.note.limit) < (
            SELECT count(*) FROM saltern.account_shares h WHERE h.account_id = \(\.note.nobody))
        RETURNING true
        """
}

/// Stores a listed share as the last statement of a creation. The two tables are distributed by different keys, so the
/// list is read in a separate part.
struct InsertShare: Statement {
    /// The account whose list is read.
    let account: AccountID
    let id: ShareID
    let manageHash: TokenHash
    let content: ShareContent
    let now: Timestamp

    private var owner: AccountID? { account == .nobody ? nil : account }

    static let sql: SQL<Self> = """
        WITH noted AS MATERIALIZED (
            SELECT h.share_id FROM saltern.account_shares h
            WHERE h.account_id = \(\.account) AND h.share_id = \(\.id)
        )
        INSERT INTO saltern.shares
            (share_id, owner_account, manage_hash, format, salt, iterations, sealed, created_at, updated_at, expires_at,
            max_views)
        SELECT n.share_id, \(\.owner), \(\.manageHash), \(\.content.format.rawValue), \(\.content.salt),
            \(\.content.iterations), \(\.content.sealed.bytes), \(\.now), \(\.now), \(\.content.expiresAt),
            \(\.content.maxViews)
        FROM noted n
        """
}
