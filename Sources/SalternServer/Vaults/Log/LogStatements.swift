internal import Postgres
internal import VaultLog

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

/// Returns a row if an entry stands in a vault's log.
struct FindEntry: Statement {
    typealias Row = [UInt8]

    let vaultID: VaultID
    let number: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.entry FROM saltern.vault_entries e WHERE e.vault_id = \(\.vaultID) AND e.number = \(\.number)
        """
}

struct InsertEntries: Statement {
    let vaultID: VaultID
    private let numbers: [Int64]
    private let hashes: [[UInt8]]
    private let entries: [[UInt8]]
    private let authors: [MemberID]
    private let kinds: [Int32]
    private let arrivedAt: Timestamp?

    /// - Parameter arrivedAt: Nil for entries that are put back.
    init(vaultID: VaultID, entries: [Entry], arrivedAt: Timestamp?) {
        self.vaultID = vaultID
        numbers = entries.map { Int64($0.number.value) }
        hashes = entries.map(\.hash.bytes)
        self.entries = entries.map(\.bytes)
        authors = entries.map { MemberID($0.author.bytes) }
        kinds = entries.map { Int32($0.payload.kind.rawValue) }
        self.arrivedAt = arrivedAt
    }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vault_entries (vault_id, number, hash, entry, author, kind, arrived_at)
        SELECT \(\.vaultID), e.number, e.hash, e.entry, e.author, e.kind, \(\.arrivedAt)
        FROM unnest(\(\.numbers)::bigint[], \(\.hashes)::bytea[], \(\.entries)::bytea[], \(\.authors)::uuid[],
            \(\.kinds)::integer[]) AS e(number, hash, entry, author, kind)
        """
}

/// Removes the entries of a vault from a number on.
struct RemoveEntries: Statement {
    let vaultID: VaultID
    var from: Int64 = 0

    static let sql: SQL<Self> =
        "DELETE FROM saltern.vault_entries e WHERE e.vault_id = \(\.vaultID) AND e.number >= \(\.from)"
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

/// Removes the boxes of other generations and of former members.
struct RemoveOtherBoxes: Statement {
    let vaultID: VaultID
    let generation: Int64
    let members: [MemberID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.vault_boxes b
        WHERE b.vault_id = \(\.vaultID)
            AND (b.generation <> \(\.generation) OR b.member_id <> ALL(\(\.members)::uuid[]))
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

/// Removes the sealed previous keys of the generations from a number on.
struct RemovePreviousKeys: Statement {
    let vaultID: VaultID
    var from: Int64 = 0

    static let sql: SQL<Self> =
        "DELETE FROM saltern.vault_generations g WHERE g.vault_id = \(\.vaultID) AND g.number >= \(\.from)"
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
