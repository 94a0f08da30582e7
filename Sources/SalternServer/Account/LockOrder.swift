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
