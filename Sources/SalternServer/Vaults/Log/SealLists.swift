internal import Cryptography
internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `GET /v1/vaults/{vault}/seals/{number}`: returns the list of a seal.
struct ShowSealList: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        let number = Int64(try request.parameters.require("number") as Int)
        let find = FindSealList(vaultID: vaultID, number: number)
        guard let list = try await authorization.read(find, in: vaultID).first else { throw Problem.notFound }
        return .json(capacity: 32 + list.count * 4 / 3) { writer in
            writer.object { writer in writer.member("list", base64: list) }
        }
    }
}

/// `PUT /v1/vaults/{vault}/seals/{number}`: stores a list that the server has lost. The entry's hash decides.
struct StoreSealList: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        let number = Int64(try request.parameters.require("number") as Int)
        try await authorization.seat(in: vaultID, atLeast: .reader)
        let find = FindEntry(vaultID: vaultID, number: number)
        guard let bytes = try await authorization.read(find, in: vaultID).first, let entry = try? Entry(bytes),
            case .seal(let seal) = entry.payload
        else { throw Problem.notFound }
        let list = try await JSONBody.readLarge(request) { try await $0.sealList(request.pace) }
        try await authorization.countingRefusal {
            guard let list, list.isList(of: seal) else { throw VaultProblem.invalidList }
            let log = try await authorization.log(of: vaultID, pace: request.pace)
            // A later list of the same manager has replaced the others.
            guard log.latestSeals.contains(where: { $0.number == entry.number }) else { throw Problem.notFound }
            try await authorization.transaction(in: vaultID, atLeast: .reader, lane: .log) { transaction, _ in
                // The owner can replace entries of a recovering vault.
                guard try await transaction.execute(find).first == bytes else { throw Problem.notFound }
                try await SealLists(vaultID: vaultID, transaction: transaction)
                    .store(list, of: seal, entry, isNew: false)
            }
        }
        return .noContent
    }
}

/// The bytes of a list, which are in the form of a `SealList`.
struct StoredList: Sendable {
    let bytes: [UInt8]
    private let digest: SHA256Digest

    /// The number of edits.
    var count: Int { bytes.count / SealList.editByteCount }

    /// Checks the form. Returns nil for other bytes.
    init?(_ bytes: [UInt8], pace: Pace) async {
        let step = SealList.editByteCount
        guard bytes.count % step == 0 else { return nil }
        var previous: ArraySlice<UInt8>?
        for start in stride(from: 0, to: bytes.count, by: step) {
            let id = bytes[start..<start + VaultItemID.byteCount]
            if let previous, !previous.lexicographicallyPrecedes(id) { return nil }
            previous = id
            if start % (step * 2_048) == 0 { await pace.giveWay() }
        }
        self.bytes = bytes
        digest = SHA256.hash(bytes)
    }

    /// Returns true for the list of a seal.
    func isList(of seal: Seal) -> Bool { count == Int(seal.count) && digest == seal.digest }
}

extension JSONMembers {
    /// Reads the member `list` of a seal.
    mutating func sealList(_ pace: Pace) async throws -> StoredList? {
        let bytes = try optional("list") { json in
            guard let bytes = Base64Text.decode(try json.text()) else { throw VaultProblem.invalidList }
            return bytes
        }
        guard let bytes else { return nil }
        guard let list = await StoredList(bytes, pace: pace) else { throw VaultProblem.invalidList }
        return list
    }
}

/// The lists of a vault's seals. Their budget is apart from that of items, so a full vault can be sealed.
///
/// A manager's list replaces its former ones of the same author. Each manager has a budget of its own, so its lists
/// push out none of others. Former managers have one together, which ids that have joined and left cannot exceed.
struct SealLists {
    let vaultID: VaultID
    let transaction: Transaction

    /// The budget of a manager, in lists of all items that the plan allows.
    static let budget: Int64 = 4

    /// Stores a list, and removes the manager's earliest ones beyond its budget.
    ///
    /// - Parameter isNew: True for a list with its entry. It names items that the vault has.
    func store(_ list: StoredList, of seal: Seal, _ entry: Entry, isNew: Bool) async throws {
        guard list.isList(of: seal) else { throw VaultProblem.invalidList }
        guard let limits = try await transaction.execute(FindSealLimit(vaultID: vaultID)).first else {
            throw Problem.notFound
        }
        let count = Int64(list.count)
        let allowed = isNew ? limits.items : max(limits.items, limits.allowed)
        guard count <= allowed else { throw ItemProblem.quotaExceeded(limit: "sealed", allowed: allowed, used: count) }
        let (number, sealer) = (Int64(entry.number.value), MemberID(entry.author.bytes))
        let author = MemberID(seal.author.bytes)
        let budget = Self.budget * max(limits.items, limits.allowed) * Int64(SealList.editByteCount)
        let (_, _, early, late) = try await transaction.execute(
            InsertSealList(
                vaultID: vaultID, number: number, author: author, sealer: sealer,
                list: list.bytes),
            RemoveReplacedSeals(vaultID: vaultID, author: author, sealer: sealer),
            RemoveEarlySeals(vaultID: vaultID, sealer: sealer, budget: budget),
            RemoveFormerSeals(vaultID: vaultID, budget: budget))
        if early.contains(number) || late.contains(number) {
            throw ItemProblem.quotaExceeded(limit: "sealed", allowed: allowed, used: count)
        }
    }
}

/// Finds the number of a vault's items, and the maximum of the plan.
struct FindSealLimit: Statement {
    let vaultID: VaultID

    struct Row: Sendable {
        let items: Int64
        let allowed: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.item_count, p.vault_items FROM saltern.vaults a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.vault_id = \(\.vaultID)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

struct InsertSealList: Statement {
    let vaultID: VaultID
    let number: Int64
    let author: MemberID
    let sealer: MemberID
    let list: [UInt8]

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vault_seals (vault_id, number, author, sealer, list)
            VALUES (\(\.vaultID), \(\.number), \(\.author), \(\.sealer), \(\.list))
        ON CONFLICT (vault_id, number) DO NOTHING
        """
}

/// Removes a manager's lists of an author's edits, except for the latest.
struct RemoveReplacedSeals: Statement {
    let vaultID: VaultID
    let author: MemberID
    let sealer: MemberID

    static let sql: SQL<Self> = """
        DELETE FROM saltern.vault_seals s
        WHERE s.vault_id = \(\.vaultID) AND s.author = \(\.author) AND s.sealer = \(\.sealer) AND s.number < (
            SELECT max(l.number) FROM saltern.vault_seals l
            WHERE l.vault_id = \(\.vaultID) AND l.author = \(\.author) AND l.sealer = \(\.sealer))
        """
}

/// Removes the earliest lists of a manager until the others fit the budget, except for the latest. Returns their
/// numbers.
struct RemoveEarlySeals: Statement {
    typealias Row = Int64

    let vaultID: VaultID
    let sealer: MemberID
    let budget: Int64

    // An array, because with old statistics a join reads the lists again for each one that goes.
    static let sql: SQL<Self> = """
        DELETE FROM saltern.vault_seals s
        WHERE s.vault_id = \(\.vaultID) AND s.number = ANY(ARRAY(
            SELECT n.number FROM (
                SELECT l.number, sum(octet_length(l.list)) OVER (ORDER BY l.number DESC) AS bytes,
                    row_number() OVER (ORDER BY l.number DESC) AS place
                FROM saltern.vault_seals l WHERE l.vault_id = \(\.vaultID) AND l.sealer = \(\.sealer)
            ) n
            WHERE n.place > 1 AND n.bytes > \(\.budget)))
        RETURNING s.number
        """
}

/// Removes lists of former managers until the others fit the budget, at most 32 at a time. The manager with the most
/// bytes loses the latest of them first. Returns their numbers.
struct RemoveFormerSeals: Statement {
    typealias Row = Int64

    let vaultID: VaultID
    let budget: Int64

    // Materialized, because without statistics the planner reads the lists again for each member. An array as above.
    static let sql: SQL<Self> = """
        WITH stored AS MATERIALIZED (
            SELECT l.number, l.sealer, octet_length(l.list) AS bytes
            FROM saltern.vault_seals l WHERE l.vault_id = \(\.vaultID)
        ), former AS MATERIALIZED (
            SELECT m.member_id FROM saltern.vault_members m
            WHERE m.vault_id = \(\.vaultID) AND m.role < 3 AND m.member_id = ANY(ARRAY(SELECT o.sealer FROM stored o))
        )
        DELETE FROM saltern.vault_seals s
        WHERE s.vault_id = \(\.vaultID) AND s.number = ANY(ARRAY(
            SELECT n.number FROM (
                SELECT f.number, sum(f.bytes) OVER (ORDER BY f.total, f.number) AS bytes,
                    row_number() OVER (ORDER BY f.total DESC, f.number DESC) AS place
                FROM (
                    SELECT o.number, o.bytes, sum(o.bytes) OVER (PARTITION BY o.sealer) AS total
                    FROM stored o WHERE o.sealer = ANY(ARRAY(SELECT m.member_id FROM former m))
                ) f
            ) n
            WHERE n.bytes > \(\.budget) AND n.place <= 32))
        RETURNING s.number
        """
}

struct FindSealList: Statement {
    typealias Row = [UInt8]

    let vaultID: VaultID
    let number: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT s.list FROM saltern.vault_seals s WHERE s.vault_id = \(\.vaultID) AND s.number = \(\.number)
        """
}

/// Finds the entries of a vault whose lists are stored.
struct FindSeals: Statement {
    typealias Row = Int64

    let vaultID: VaultID

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT s.number FROM saltern.vault_seals s WHERE s.vault_id = \(\.vaultID) ORDER BY s.number"
}

/// Removes the lists of entries from a number on.
struct RemoveSeals: Statement {
    let vaultID: VaultID
    var from: Int64 = 0

    static let sql: SQL<Self> =
        "DELETE FROM saltern.vault_seals s WHERE s.vault_id = \(\.vaultID) AND s.number >= \(\.from)"
}
