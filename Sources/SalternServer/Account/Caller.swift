internal import Postgres

/// The caller of a request and its time: the parameters of all statements about the caller's account.
struct Caller: Sendable {
    let accountID: AccountID
    let tokenHash: TokenHash
    /// The time of the request. Sessions that expire at or before it are not live.
    let now: Timestamp
    /// The idle limit: sessions last used at or before it are not live.
    let idleSince: Timestamp
    /// The use of a session is recorded if its last recorded use is at or before this time.
    let touchBefore: Timestamp
    /// The vault that the request is about. Nil for the caller's account.
    private(set) var vault: VaultID?
    /// The id of the key with which the request's items are sealed. Nil without sealed bytes.
    private(set) var keyID: Int32?
    /// The number of the latest entry of the vault's log that the caller has.
    private(set) var head: Int64 = 0
    /// The start of the interval between versions: an item's next version is kept if the last one was kept at or before
    /// it.
    var keptSince: Timestamp { now - ItemVersion.interval }

    init(_ token: PresentedToken, now: Timestamp, policy: SessionPolicy) {
        self.init(SessionKey(accountID: token.accountID, tokenHash: token.hash), now: now, policy: policy)
    }

    init(_ session: SessionKey, now: Timestamp, policy: SessionPolicy) {
        accountID = session.accountID
        tokenHash = session.tokenHash
        self.now = now
        idleSince = now - policy.idleTimeout
        touchBefore = now - policy.touchInterval
    }

    /// Returns the caller as a member of a vault.
    func `in`(_ vault: VaultID, head: Int64, keyID: Int32?) -> Caller {
        var caller = self
        caller.vault = vault
        caller.head = head
        caller.keyID = keyID
        return caller
    }

    /// The condition that the caller's session is live and not restricted.
    static let hasLiveSession = Seat.session.exists

    /// The condition that the session `live` is the caller's, live, and not restricted.
    static let isLiveSession: CallerSQL<Never> = """
        live.account_id = \(.account) AND live.token_hash = \(.token) \
        AND \(SessionLiveness.isLive("live", at: "\(.now)", idleSince: "\(.idleSince)"))
        """

    /// The condition that the use of the session `live` is due to be recorded.
    static let isTouchDue: CallerSQL<Never> = "live.last_used_at <= \(.touchBefore)"
}

/// The row by which a caller may change the items of an owner.
///
/// Statements have it as `live`, and the owner's row as `a`.
struct Seat: Sendable {
    /// The row's table.
    let table: SQLFragment
    /// The condition that `live` is the caller's row and permits the change.
    let isCallers: CallerSQL<Never>
    /// The condition that the use of the row is due to be recorded.
    let isTouchDue: CallerSQL<Never>
    /// The condition that the owner accepts changes.
    let admits: CallerSQL<Never>

    /// The condition that the caller has such a row.
    var exists: CallerSQL<Never> { "EXISTS (SELECT FROM \(table) live WHERE \(isCallers))" }

    /// The live session, by which the caller changes the items of its account.
    static let session = Seat(
        table: "saltern.sessions", isCallers: Caller.isLiveSession, isTouchDue: Caller.isTouchDue,
        admits: "a.locked_at IS NULL")

    /// The membership, by which the caller changes the items of a vault. It admits only bytes that are sealed with the
    /// key of the present generation, and callers that have the entries about themselves and that generation.
    /// ``HoldSession`` checks the session.
    static let member = Seat(
        table: "saltern.vault_members",
        isCallers: """
            live.vault_id = \(.account) AND live.holder = \(.holder) AND live.role >= 2 AND live.since <= \(.head)
            """,
        isTouchDue: "false",
        admits: """
            (\(.keyID)::integer IS NULL OR a.key_id = \(.keyID))
                AND a.generation_number <= \(.head) AND a.head_number >= \(.head)
            """)
}

/// Selects the account row for a change of items.
enum CallersAccount {
    /// The row's columns. `a` is the account, `p` its plan.
    static let columns: SQLFragment = """
        a.account_id, a.revision, a.item_count, a.item_bytes, a.tombstone_count, a.kept_count, a.kept_bytes,
            a.version_count, a.version_bytes, p.max_items, p.max_item_bytes, p.max_bytes, p.deleted_days
        """

    /// Selects the row if the caller may change it. It follows ``AuthenticateForWrite``, so it sees the previous
    /// writer's changes.
    static func sql(_ seat: Seat) -> CallerSQL<Never> {
        """
        SELECT \(columns)
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(.account) AND \(seat.admits) AND \(seat.exists)
        """
    }
}

/// The SQL of an ``AccountWrite``, with the parameters `\(.account)`, `\(.token)`, `\(.now)`, `\(.idleSince)`,
/// `\(.touchBefore)` and `\(.keptSince)`.
typealias CallerSQL<Root> = SQLTemplate<Root, Caller>

extension Caller: SQLContext {
    enum Parameter {
        case account, token, now, idleSince, touchBefore, keptSince
        /// The caller's account, where `account` is a vault.
        case holder
        case keyID, head
    }

    func append(_ parameter: Parameter, to parameters: inout Parameters) {
        switch parameter {
        case .account: parameters.append(vault?.uuid ?? accountID.uuid)
        case .token: parameters.append(tokenHash)
        case .now: parameters.append(now)
        case .idleSince: parameters.append(idleSince)
        case .touchBefore: parameters.append(touchBefore)
        case .keptSince: parameters.append(keptSince)
        case .holder: parameters.append(accountID)
        case .keyID: parameters.append(keyID)
        case .head: parameters.append(head)
        }
    }
}

/// The columns by which a session's row is found.
struct SessionKey: Hashable, Sendable {
    let accountID: AccountID
    let tokenHash: TokenHash
}

/// SQL conditions on a session's life.
enum SessionLiveness {
    /// The condition that the session of an alias is live and not restricted to a recovery.
    ///
    /// - Parameters:
    ///   - now: Sessions that expire at or before it are not live.
    ///   - idleSince: Sessions last used at or before it are not live.
    static func isLive<Root, Context>(
        _ alias: SQLFragment, at now: SQLTemplate<Root, Context>, idleSince: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "\(hasNotEnded(alias, at: now, idleSince: idleSince)) AND NOT \(alias).restricted"
    }

    /// The condition that the session of an alias has not ended, restricted or not.
    static func hasNotEnded<Root, Context>(
        _ alias: SQLFragment, at now: SQLTemplate<Root, Context>, idleSince: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "\(alias).expires_at > \(now) AND \(alias).last_used_at > \(idleSince)"
    }
}
