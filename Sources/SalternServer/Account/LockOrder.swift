internal import Cryptography
internal import HTTPCore
internal import Postgres

/// The order in which rows are locked. All writing statements and transactions follow it, so no two wait for each
/// other.
///
/// 1. A transaction takes the locks of a case below before those of a later one. It may write rows that it has locked
///    already at any time.
/// 2. Rows within an account (``isWithinAccount``) are written with the account's row locked, and need no order among
///    themselves. Four writes do without that lock, and none of them waits. A new session and a new event are rows that
///    no other transaction can refer to, and take `FOR KEY SHARE` of the account's row. The removal of surplus events,
///    and the last use of sessions, skip locked rows. Deliveries of outgoing events also do without it: each locks the
///    row of one queue first, and waits for nothing else.
/// 3. Of several accounts, all rows are locked first, in the order of their ids. The deletion of an account locks its
///    vaults in the order of their ids, each before the rows within it.
/// 4. A new row with a random key waits for no other. Only a userid and the subject of attempts are keys that others
///    may write at the same moment.
/// 5. A statement with `SKIP LOCKED` never waits, and is exempt from the order.
/// 6. A transaction that holds an account for long takes last the rows that strangers request: failures at the userid,
///    the userid itself, links. The end of the audit log comes last of all, because each record waits for it.
/// 7. A move of the revision base locks the installation's row, then the tables of accounts and vaults in `SHARE` mode.
///    No account and no vault changes during the move.
/// 8. A group is several requests in one transaction (`Statement.bytesInGroup`). Each follows the order; between them
///    there is none. A lock wait there ends after 5 ms, so no cycle lasts, and the request continues alone.
///
/// Strengths of locks of the account's row:
///
/// - `FOR KEY SHARE` (the account stays: log-ins, events) and `FOR NO KEY UPDATE` (writes) are compatible.
/// - `FOR UPDATE` (changes of the credential, deletion, acts of admins) excludes both.
enum LockOrder: Int, CaseIterable {
    /// A single row, changed on its own.
    case installation
    /// Removed by one transaction, and kept `FOR KEY SHARE` by those that assign it.
    case plans
    /// Locked alone, by the statement that disables a destination.
    case destinations
    /// Taken before the userid, so that callers without an invite cannot test which userids exist.
    case invites
    /// Changed by admins only.
    case services
    case accounts
    /// Rows of an account.
    case contents
    /// A vault. Its members' accounts are locked first.
    case vaults
    /// Rows of a vault, written with the vault's row locked.
    case vaultContents
    case failedAttempts
    case logins
    case shares
    /// Found by links, like shares.
    case vaultInvitations
    /// The list of an account's shares. It belongs to the account, except for shares without one.
    case accountShares
    /// The end of the audit log.
    case auditHead

    /// The tables whose rows are locked at this position.
    var tables: [String] {
        switch self {
        case .installation: ["installation"]
        case .plans: ["plans"]
        case .destinations: ["destinations"]
        case .invites: ["invites"]
        case .services: ["services"]
        case .accounts: ["accounts"]
        case .contents:
            [
                "items", "deleted_contents", "replaced_contents", "sessions", "recoveries", "kept_keyrings",
                "second_factors", "second_factor_codes", "passkeys", "used_challenges", "rotations", "rotation_items",
                "receipts", "security_events", "event_queues", "outgoing_events",
                "memberships",
            ]
        case .vaults: ["vaults"]
        case .vaultContents:
            [
                "vault_items", "vault_deleted_contents", "vault_replaced_contents", "vault_members", "vault_entries",
                "vault_boxes", "vault_generations", "vault_seals",
            ]
        case .failedAttempts: ["failed_attempts"]
        case .logins: ["logins"]
        case .shares: ["shares"]
        case .vaultInvitations: ["vault_invitations"]
        case .accountShares: ["account_shares"]
        case .auditHead: ["audit_head", "audit_log"]
        }
    }

    /// True if the rows belong to an account and are written under its lock.
    var isWithinAccount: Bool { self == .contents || self == .accountShares }
}

/// Locks an account's row against other writers until the transaction ends. All writers of the account's rows take this
/// lock first. The next statement has a snapshot of its own, so it sees the previous writer's changes.
struct LockAccount: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR NO KEY UPDATE"
}

/// Locks an account's row against all other locks until the transaction ends. Log-ins (`FOR KEY SHARE`) and writes
/// (`FOR NO KEY UPDATE`) wait.
struct LockAccountWholly: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR UPDATE"
}

/// Prevents the deletion of an account until the transaction ends. Writes and log-ins continue; a deletion or a change
/// of the credential waits, or is waited for.
struct KeepAccount: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR KEY SHARE"
}

/// Locks the account that owns a share, before a change in the owner's name. Returns the plan's limit of sealed bytes,
/// and no row if the account is locked or gone.
struct LockShareOwner: Statement {
    typealias Row = Int64

    let accountID: AccountID

    static let sql: SQL<Self> = """
        SELECT p.max_item_bytes FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(\.accountID) AND a.locked_at IS NULL
        FOR NO KEY UPDATE OF a
        """
}

/// Makes PostgreSQL plan each statement of the transaction for its own parameters.
///
/// A cached plan may date from a time of small tables, and would scan all of an account's rows for a few. It is for
/// statements long enough to make the planning time negligible.
struct PlanForParameters: Statement {
    typealias Row = String

    static let sql: SQL<Self> = "SELECT set_config('plan_cache_mode', 'force_custom_plan', true)"
}

/// The rows that requests lock or write, as keys of the database's client. Requests with one key queue on a node, so a
/// held account or share delays no others.
///
/// A request that locks several rows uses the key with the most contention: the account, if there is one.
extension RequestKey {
    static func account(_ id: AccountID) -> RequestKey { RequestKey(.account, id.uuid) }

    static func counters(_ subject: AttemptSubject) -> RequestKey {
        RequestKey(.attemptSubject, hashing: subject.digest.bytes)
    }

    /// The key of a registration's or a change's new userid.
    static func userid(_ userid: Userid) -> RequestKey { RequestKey(.userid, hashing: userid.string.utf8) }

    /// The key of an invite that is used up.
    static func invite(_ hash: InviteHash) -> RequestKey { RequestKey(.invite, hashing: hash.digest.bytes) }

    /// The key of a share that is viewed, or has no account.
    static func share(_ id: ShareID) -> RequestKey { RequestKey(.share, hashing: id.bytes) }

    /// The key of a share that is changed: its account, which is locked first, or the share itself.
    static func share(_ id: ShareID, of owner: AccountID?) -> RequestKey {
        if let owner, owner != .nobody { .account(owner) } else { .share(id) }
    }

    /// The key of recording a session's use.
    static func session(_ hash: TokenHash) -> RequestKey { RequestKey(.session, hashing: hash.digest.bytes) }

    /// The key of the network that a request comes from: the address, or the /64 of IPv6.
    static func network(of client: ClientAddress) -> RequestKey {
        withUnsafeBytes(of: client.ip.network) { RequestKey(.address, hashing: $0) }
    }
}

/// The statements of locks of accounts.
extension StatementList {
    static var accountRows: [any Statement.Type] {
        [
            LockAccount.self, PlanForParameters.self, LockAccountWholly.self, KeepAccount.self, LockShareOwner.self,
        ]
    }
}
