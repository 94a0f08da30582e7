internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults/{vault}/log`: appends an entry of the caller to the vault's log.
///
/// A repeated request returns the same result.
struct AppendEntry: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        let vaultID: VaultID = try request.parameters.require("vault")
        let (entry, additions, revision) = try await JSONBody.readLarge(request) { members in
            (
                try members.entry(), EntryAdditions(keys: try NewKeys(&members), list: try members.sealList()),
                try members.optional("ifRevision") { json in try json.integer() }
            )
        }
        switch entry.payload {
        case .role, .leave, .revoke, .rotate, .remove, .seal, .offer, .rekey: break
        case .found, .invite, .join, .accept: throw VaultProblem.otherRoute
        }
        if revision != nil, entry.payload.kind != .remove { throw VaultProblem.otherRoute }
        let appended = try await authorization.transaction(in: vaultID, atLeast: .reader) { transaction, seat in
            let stored = try await StoredLog(of: vaultID, in: transaction)
            if let revision, !stored.contains(entry) { try await Self.check(revision, of: vaultID, in: transaction) }
            return try await Self.append(entry, additions, to: stored, seat, now: authorization.now)
        }
        return Self.reply(.ok, entry, vault: nil, revision: appended)
    }

    /// Checks that no item has changed above a revision. A manager then has all edits of the members that it removes.
    private static func check(_ revision: Int64, of vaultID: VaultID, in transaction: Transaction) async throws {
        let find = FindItemAbove(vaultID: vaultID, revision: revision)
        guard let later = try await transaction.execute(find).first else { return }
        throw VaultProblem.vaultMoved(revision: later)
    }

    /// Appends an entry of the caller, unless it stands in the log.
    ///
    /// - Returns: The vault's revision. Nil if the entry stands in the log.
    static func append(
        _ entry: Entry, _ additions: EntryAdditions = .none, to log: StoredLog, _ seat: VaultSeat, now: Timestamp
    ) async throws -> Int64? {
        if log.contains(entry) { return nil }
        guard MemberID(entry.author.bytes) == seat.memberID else { throw VaultProblem.refused(.unknownAuthor) }
        var log = log
        return try await log.append(entry, additions, now: now)
    }

    static func reply(_ status: HTTPStatus, _ entry: Entry, vault: VaultID?, revision: Int64?) -> Response {
        .json(status) { writer in
            writer.object { writer in
                if let vault { writer.member("id", vault) }
                writer.member("number", Int64(entry.number.value))
                writer.member("hash", base64: entry.hash.bytes)
                if let revision { writer.member("revision", revision) }
            }
        }
    }
}

/// Finds the highest revision of a vault's items and tombstones above a number.
struct FindItemAbove: Statement {
    typealias Row = Int64

    let vaultID: VaultID
    let revision: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT i.revision FROM saltern.vault_items i WHERE i.vault_id = \(\.vaultID) AND i.revision > \(\.revision)
        ORDER BY i.revision DESC LIMIT 1
        """
}
