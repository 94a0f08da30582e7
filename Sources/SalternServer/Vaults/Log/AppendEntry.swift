internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults/{vault}/log`: appends an entry of the caller to the vault's log.
///
/// A repeated request returns the same result, also after its author has left. New keys need the password key, so that
/// a stolen session cannot replace those of its owner.
struct AppendEntry: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        do {
            try await authorization.seat(in: vaultID, atLeast: .reader)
        } catch let problem as Problem where problem.status == .notFound {
            guard let reply = try await Self.repeated(request, vaultID, authorization) else { throw problem }
            return reply
        }
        let new = try await authorization.countingRefusal { try await NewEntry(request) }
        let entry = new.entry
        if case .rekey = entry.payload { try await Self.prove(new.passwordKey, authorization) }
        let appended = try await authorization.transaction(
            onLogOf: vaultID, atLeast: .reader, pace: request.pace
        ) { transaction, seat, stored in
            if let revision = new.revision, !stored.contains(entry) {
                try await Self.check(revision, of: vaultID, in: transaction)
            }
            return try await Self.append(entry, new.additions, to: stored, seat)
        }
        return Self.reply(.ok, entry, vault: nil, revision: appended)
    }

    /// Returns the reply to an author that has left since the first request. Nil if its entry does not stand in the
    /// log.
    private static func repeated(
        _ request: Request, _ vaultID: VaultID, _ authorization: Authorization
    ) async throws -> Response? {
        let entry = try await authorization.countingRefusal { try await NewEntry(request) }.entry
        let find = FindEntry(vaultID: vaultID, number: Int64(entry.number.value))
        guard try await authorization.database.execute(find).first == entry.bytes else {
            authorization.door.refusals.take(authorization.accountID.uuid)
            return nil
        }
        return reply(.ok, entry, vault: nil, revision: nil)
    }

    private static func prove(_ key: PasswordKey?, _ authorization: Authorization) async throws {
        guard let key else { throw CurrentKeyMissing() }
        let proven = try await authorization.prove(key)
        // The credential may have changed during the check.
        try await authorization.change(as: proven) { _ in }
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
        _ entry: Entry, _ additions: EntryAdditions = .none, to log: StoredLog, _ seat: VaultSeat
    ) async throws -> Int64? {
        if log.contains(entry) { return nil }
        guard MemberID(entry.author.bytes) == seat.memberID else { throw VaultProblem.refused(.unknownAuthor) }
        var log = log
        return try await log.append(entry, additions)
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

/// The request of an ``AppendEntry``.
private struct NewEntry {
    let entry: Entry
    let additions: EntryAdditions
    /// The revision above which no item may have changed.
    let revision: Int64?
    let passwordKey: PasswordKey?

    init(_ request: Request) async throws {
        (entry, additions, revision, passwordKey) = try await JSONBody.readLarge(request) { members in
            (
                try members.entry(),
                EntryAdditions(keys: try NewKeys(&members), list: try await members.sealList(request.pace)),
                try members.optional("ifRevision") { json in try json.integer() },
                try members.optional("currentPasswordKey", PasswordKey.init(json:))
            )
        }
        switch entry.payload {
        case .role, .leave, .revoke, .rotate, .remove, .seal, .offer, .rekey: break
        case .found, .invite, .join, .accept: throw VaultProblem.otherRoute
        }
        if revision != nil, entry.payload.kind != .remove { throw VaultProblem.otherRoute }
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
            AND i.revision > 0
        ORDER BY i.revision DESC LIMIT 1
        """
}
