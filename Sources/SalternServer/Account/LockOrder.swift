/// The order in which rows are locked. Every statement that writes, and every transaction, follows it; so two of them may
/// wait for each other, but never both for the other.
///
/// 1. A transaction takes the locks of a case below before those of a later one. Rows that it has locked already it may
///    write at any time.
/// 2. What belongs to an account (``isWithinAccount``) is written with the account's row locked, and needs no order of its
///    own: nobody else is there. Four things are written without it, and none of them ever waits: a new session and a
///    new event, which are rows that nobody else knows, under `FOR KEY SHARE` of the account's row; the end of the events
///    that a new one pushes out, and the last use of sessions, which skip rows that somebody has locked.
/// 3. Of several accounts the rows are locked first, all of them, in the order of their ids.
/// 4. A new row waits for nobody when its key was drawn at random: only a userid and the subject of attempts are keys that
///    others may be writing at the same moment.
/// 5. A statement that must not wait for its place says `SKIP LOCKED`, and then obeys no order.
/// 6. Whoever holds an account for long takes what strangers ask for last: the failures at its userid, the userid itself,
///    the links that they open. The end of the audit log, for which everybody waits who records, comes last of all.
/// 7. Whoever moves the revision base locks the installation's row and then the table of accounts as a whole, in `SHARE`
///    mode: no change of an account is under way while it moves.
/// 8. A group is several requests in one transaction (`Statement.bytesInGroup`): each follows the order, and between them
///    there is none. There nobody waits for longer than 5 ms, so no circle lasts, and who has waited goes on alone.
///
/// How strong a lock of the account's row is: `FOR KEY SHARE` (the account stays: log-ins, events) and `FOR NO KEY UPDATE`
/// (writes) go together; `FOR UPDATE` (changes of the credential, deletion, acts of admins) keeps out both.
enum LockOrder: Int, CaseIterable {
    /// One row, changed on its own.
    case installation
    case plans
    /// Used up before the userid is taken, so that nobody without an invite learns which userids exist.
    case invites
    case accounts
    /// What belongs to an account.
    case contents
    case failedAttempts
    case logins
    case shares
    /// The list of an account's shares, which is an account's but for the shares that have none.
    case accountShares
    /// The end of the audit log.
    case auditHead

    /// The tables whose rows are locked at this place.
    var tables: [String] {
        switch self {
        case .installation: ["installation"]
        case .plans: ["plans"]
        case .invites: ["invites"]
        case .accounts: ["accounts"]
        case .contents:
            [
                "items", "deleted_contents", "replaced_contents", "sessions", "recoveries", "kept_keyrings",
                "second_factors",
                "second_factor_codes", "rotations", "rotation_items", "receipts", "security_events",
            ]
        case .failedAttempts: ["failed_attempts"]
        case .logins: ["logins"]
        case .shares: ["shares"]
        case .accountShares: ["account_shares"]
        case .auditHead: ["audit_head", "audit_log"]
        }
    }

    /// Whether these rows are an account's and written under its lock.
    var isWithinAccount: Bool { self == .contents || self == .accountShares }
}
