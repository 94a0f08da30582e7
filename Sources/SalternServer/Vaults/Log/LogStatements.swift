internal import Postgres

/// Finds the entries of a vault's log above a number, in order.
struct FindEntries: Statement {
    typealias Row = [UInt8]

    let vaultID: VaultID
    var after: Int64 = 0
    /// Maximum number of entries.
    var limit: Int64 = 4_096

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.entry FROM saltern.vault_entries e WHERE e.vault_id = \(\.vaultID) AND e.number > \(\.after)
        ORDER BY e.number LIMIT \(\.limit)
        """
}

struct InsertEntry: Statement {
    let vaultID: VaultID
    let number: Int64
    let hash: [UInt8]
    let entry: [UInt8]

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vault_entries (vault_id, number, hash, entry)
            VALUES (\(\.vaultID), \(\.number), \(\.hash), \(\.entry))
        """
}

/// Stores the boxes of a generation.
struct InsertBoxes: Statement {
    let vaultID: VaultID
    let generation: Int64
    let members: [MemberID]
    let boxes: [[UInt8]]

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vault_boxes (vault_id, member_id, generation, box)
        SELECT \(\.vaultID), b.member_id, \(\.generation), b.box
        FROM unnest(\(\.members)::uuid[], \(\.boxes)::bytea[]) AS b(member_id, box)
        ON CONFLICT (vault_id, member_id, generation) DO UPDATE SET box = excluded.box
        """
}

/// Removes the boxes of earlier generations and of former members.
struct RemoveOldBoxes: Statement {
    let vaultID: VaultID
    let generation: Int64
    let members: [MemberID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.vault_boxes b
        WHERE b.vault_id = \(\.vaultID)
            AND (b.generation < \(\.generation) OR b.member_id <> ALL(\(\.members)::uuid[]))
        """
}

/// Removes a member's box.
struct RemoveBox: Statement {
    let vaultID: VaultID
    let memberID: MemberID

    static let sql: SQL<Self> = """
        DELETE FROM saltern.vault_boxes b WHERE b.vault_id = \(\.vaultID) AND b.member_id = \(\.memberID)
        """
}

/// Stores the keys before generations, each sealed with its generation's key.
struct InsertPreviousKeys: Statement {
    let vaultID: VaultID
    let generations: [Int64]
    let keys: [[UInt8]]

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vault_generations (vault_id, number, previous_key)
        SELECT \(\.vaultID), g.number, g.key
        FROM unnest(\(\.generations)::bigint[], \(\.keys)::bytea[]) AS g(number, key)
        ON CONFLICT (vault_id, number) DO UPDATE SET previous_key = excluded.previous_key
        """
}

/// Finds the sealed keys of a vault's former generations, latest first.
struct FindPreviousKeys: Statement {
    let vaultID: VaultID

    struct Row: Sendable {
        /// The generation whose key opens it.
        let generation: Int64
        let key: [UInt8]
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT g.number, g.previous_key FROM saltern.vault_generations g WHERE g.vault_id = \(\.vaultID)
        ORDER BY g.number DESC
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

struct RemovePreviousKeys: Statement {
    let vaultID: VaultID

    static let sql: SQL<Self> = "DELETE FROM saltern.vault_generations g WHERE g.vault_id = \(\.vaultID)"
}

/// Finds a member's boxes, latest generation first.
struct FindBoxes: Statement {
    let vaultID: VaultID
    let accountID: AccountID

    struct Row: Sendable {
        let generation: Int64
        let box: [UInt8]
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT b.generation, b.box
        FROM saltern.vault_members m JOIN saltern.vault_boxes b ON b.vault_id = m.vault_id AND b.member_id = m.member_id
        WHERE m.vault_id = \(\.vaultID) AND b.vault_id = \(\.vaultID) AND m.holder = \(\.accountID)
            AND \(VaultSeat.isLive("m"))
        ORDER BY b.generation DESC
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
