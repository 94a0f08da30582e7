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
        _ = try await authorization.identify()
        let vaultID: VaultID = try request.parameters.require("vault")
        let number = Int64(try request.parameters.require("number") as Int)
        let list = try await JSONBody.readLarge(request) { try $0.sealList() }
        try await authorization.transaction(in: vaultID, atLeast: .reader) { transaction, _ in
            let stored = try await StoredLog(of: vaultID, in: transaction)
            guard let entry = stored.entries.first(where: { $0.number.value == UInt64(clamping: number) }),
                case .seal(let seal) = entry.payload
            else { throw Problem.notFound }
            guard let list else { throw VaultProblem.invalidList }
            try await SealLists(vaultID: vaultID, transaction: transaction).store(list, of: seal, entry.number)
        }
        return .noContent
    }
}

/// The lists of a vault's seals. Their budget is apart from that of items, so a full vault can be sealed.
struct SealLists {
    let vaultID: VaultID
    let transaction: Transaction

    /// The budget, in lists of all items that the plan allows.
    static let budget: Int64 = 2

    /// Stores a list, and removes the earliest ones beyond the budget.
    func store(_ list: SealList, of seal: Seal, _ number: EntryNumber) async throws {
        guard list.isList(of: seal) else { throw VaultProblem.invalidList }
        guard let limit = try await transaction.execute(FindSealLimit(vaultID: vaultID)).first else {
            throw Problem.notFound
        }
        let count = Int64(list.edits.count)
        guard count <= limit else { throw ItemProblem.quotaExceeded(limit: "sealed", allowed: limit, used: count) }
        let (_, removed) = try await transaction.execute(
            InsertSealList(vaultID: vaultID, number: Int64(number.value), list: list.bytes),
            RemoveEarlySeals(vaultID: vaultID, budget: Self.budget * limit * Int64(SealList.editByteCount)))
        if removed.contains(Int64(number.value)) {
            throw ItemProblem.quotaExceeded(limit: "sealed", allowed: limit, used: count)
        }
    }
}

/// Finds the maximum number of edits in a list: the plan's items, or those that exist under an earlier plan.
struct FindSealLimit: Statement {
    typealias Row = Int64

    let vaultID: VaultID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT greatest(p.vault_items, a.item_count) FROM saltern.vaults a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.vault_id = \(\.vaultID)
        """
}

struct InsertSealList: Statement {
    let vaultID: VaultID
    let number: Int64
    let list: [UInt8]

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vault_seals (vault_id, number, list) VALUES (\(\.vaultID), \(\.number), \(\.list))
        ON CONFLICT (vault_id, number) DO NOTHING
        """
}

/// Removes the earliest lists of a vault until the others fit the budget, except for the latest. Returns their numbers.
struct RemoveEarlySeals: Statement {
    typealias Row = Int64

    let vaultID: VaultID
    let budget: Int64

    static let sql: SQL<Self> = """
        DELETE FROM saltern.vault_seals s USING (
            SELECT l.vault_id, l.number, sum(octet_length(l.list)) OVER (ORDER BY l.number DESC) AS bytes,
                row_number() OVER (ORDER BY l.number DESC) AS place
            FROM saltern.vault_seals l WHERE l.vault_id = \(\.vaultID)
        ) n
        WHERE s.vault_id = \(\.vaultID) AND s.number = n.number AND n.place > 1 AND n.bytes > \(\.budget)
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

struct RemoveSeals: Statement {
    let vaultID: VaultID

    static let sql: SQL<Self> = "DELETE FROM saltern.vault_seals s WHERE s.vault_id = \(\.vaultID)"
}
