internal import Postgres

/// How much of an account one statement removes, so that none takes long, however large the account is.
enum DeletionSlice {
    static let rows: Int64 = 1_000
    /// Sealed bytes; a single row may have more.
    static let bytes: Int64 = 64 * 1_048_576

    /// Removes rows with sealed bytes in the order of their keys, from a key on, and returns the key of the last one;
    /// nothing when there are none. `$1` is the account, then come the key, ``rows`` and ``bytes``.
    ///
    /// The next slice begins at that key, which is gone: what the transaction has removed is not walked over again.
    static func removing(from table: String, key: [String]) -> String {
        let columns = key.joined(separator: ", ")
        let stored = key.map { "stored.\($0)" }.joined(separator: ", ")
        let bounds = key.indices.map { "$\($0 + 2)" }.joined(separator: ", ")
        let match = key.map { "d.\($0) = s.\($0)" }.joined(separator: " AND ")
        return """
            WITH slice AS (
                SELECT counted.* FROM (
                    SELECT \(columns), row_number() OVER by_key AS position,
                        sum(coalesce(octet_length(next.body), 0) + coalesce(octet_length(next.title), 0))
                            OVER by_key AS bytes
                    FROM (
                        SELECT \(stored), stored.title, stored.body FROM saltern.\(table) stored
                        WHERE stored.account_id = $1 AND (\(stored)) >= (\(bounds))
                        ORDER BY \(stored) LIMIT $\(key.count + 2)
                    ) next
                    WINDOW by_key AS (ORDER BY \(columns) ROWS UNBOUNDED PRECEDING)
                ) counted
                WHERE counted.bytes <= $\(key.count + 3) OR counted.position = 1
            ), gone AS (
                DELETE FROM saltern.\(table) d USING slice s WHERE d.account_id = $1 AND \(match)
                RETURNING \(key.map { "d.\($0)" }.joined(separator: ", "))
            )
            SELECT \(columns) FROM gone ORDER BY \(key.map { "\($0) DESC" }.joined(separator: ", ")) LIMIT 1
            """
    }

    /// Appends ``rows`` and ``bytes``.
    static func bind(to parameters: inout Parameters) {
        parameters.append(rows)
        parameters.append(bytes)
    }
}

/// Removes some of an account's items and tombstones.
struct RemoveSomeItems: Statement {
    let accountID: AccountID
    let from: ItemID

    static let sql = DeletionSlice.removing(from: "items", key: ["item_id"])

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(from)
        DeletionSlice.bind(to: &parameters)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ItemID { try row.next() }
}

/// Removes some of what an account's deleted items held.
struct RemoveSomeDeletedContents: Statement {
    let accountID: AccountID
    let from: ItemID

    static let sql = DeletionSlice.removing(from: "deleted_contents", key: ["item_id"])

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(from)
        DeletionSlice.bind(to: &parameters)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ItemID { try row.next() }
}

/// Removes some of the items that an account has staged for rotations.
struct RemoveSomeStagedItems: Statement {
    let accountID: AccountID
    let from: Key

    struct Key: Sendable {
        let rotationID: UUID
        let itemID: ItemID
    }

    static let sql = DeletionSlice.removing(from: "rotation_items", key: ["rotation_id", "item_id"])

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(from.rotationID)
        parameters.append(from.itemID)
        DeletionSlice.bind(to: &parameters)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Key {
        Key(rotationID: try row.next(), itemID: try row.next())
    }
}

/// Removes some of an account's security events.
struct RemoveSomeSecurityEvents: Statement {
    let accountID: AccountID
    let from: Key

    struct Key: Sendable {
        let occurredAt: Timestamp
        let eventID: SecurityEventID
    }

    static let sql = """
        WITH slice AS (
            SELECT e.occurred_at, e.event_id FROM saltern.security_events e
            WHERE e.account_id = $1 AND (e.occurred_at, e.event_id) >= ($2, $3)
            ORDER BY e.occurred_at, e.event_id LIMIT $4
        ), gone AS (
            DELETE FROM saltern.security_events d USING slice s
            WHERE d.account_id = $1 AND d.occurred_at = s.occurred_at AND d.event_id = s.event_id
            RETURNING d.occurred_at, d.event_id
        )
        SELECT occurred_at, event_id FROM gone ORDER BY occurred_at DESC, event_id DESC LIMIT 1
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(from.occurredAt)
        parameters.append(from.eventID)
        parameters.append(DeletionSlice.rows)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Key {
        Key(occurredAt: try row.next(), eventID: try row.next())
    }
}

/// Removes some of the shares from an account's list, and returns their identifiers.
struct RemoveSomeAccountShares: Statement {
    let accountID: AccountID

    static let sql = """
        WITH slice AS (
            SELECT s.share_id FROM saltern.account_shares s WHERE s.account_id = $1 ORDER BY s.share_id LIMIT 100
        ), gone AS (
            DELETE FROM saltern.account_shares d USING slice s WHERE d.account_id = $1 AND d.share_id = s.share_id
            RETURNING d.share_id
        )
        SELECT share_id FROM gone
        """

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ShareID { try row.next() }
}

/// Removes an account's shares by their identifiers.
struct RemoveShares: Statement {
    let shareIDs: [ShareID]
    let accountID: AccountID

    static let sql = "DELETE FROM saltern.shares WHERE share_id = ANY($1) AND owner_account = $2"

    func bind(to parameters: inout Parameters) {
        parameters.append(shareIDs)
        parameters.append(accountID)
    }
}

/// The token hashes of an account's sessions, live or not.
struct FindTokenHashes: Statement {
    let accountID: AccountID

    static let isReadOnly = true
    static let sql = "SELECT s.token_hash FROM saltern.sessions s WHERE s.account_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> TokenHash { try row.next() }
}

/// Forgets the failures of subjects, but for those that somebody is counting or forgetting at this moment: who does so
/// may be about to wait for the account.
struct ForgetFailedAttempts: Statement {
    let subjects: [AttemptSubject]

    static let sql = """
        WITH idle AS (
            SELECT f.subject FROM saltern.failed_attempts f WHERE f.subject = ANY($1) FOR UPDATE SKIP LOCKED
        )
        DELETE FROM saltern.failed_attempts d USING idle i WHERE d.subject = ANY($1) AND d.subject = i.subject
        """

    func bind(to parameters: inout Parameters) { parameters.append(subjects) }
}

/// Removes an account's sessions without a word in its security log.
struct RemoveSessionsAltogether: Statement {
    let accountID: AccountID

    static let sql = "DELETE FROM saltern.sessions s WHERE s.account_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }
}

/// Removes the account itself, and of everything else that is stored under it what a few rows hold.
struct RemoveAccount: Statement {
    let accountID: AccountID

    /// The tables that this statement empties beside `accounts`.
    private static let tables = [
        "recoveries", "second_factors", "second_factor_codes", "receipts", "rotations",
    ]

    static let sql =
        "WITH "
        + tables.map { "\($0) AS (DELETE FROM saltern.\($0) d WHERE d.account_id = $1)" }.joined(separator: ", ")
        + " DELETE FROM saltern.accounts a WHERE a.account_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }
}
