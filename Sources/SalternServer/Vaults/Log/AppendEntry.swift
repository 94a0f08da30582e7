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
        let (entry, keys) = try await JSONBody.readLarge(request) { members in
            (try members.entry(), try NewKeys(&members))
        }
        switch entry.payload {
        case .role, .leave, .revoke, .rotate, .remove, .seal, .offer, .rekey: break
        case .found, .invite, .join, .accept: throw VaultProblem.otherRoute
        }
        let revision = try await authorization.transaction(in: vaultID, atLeast: .reader) { transaction, seat in
            try await Self.append(entry, keys, vaultID, seat, in: transaction, now: authorization.now)
        }
        return Self.reply(.ok, entry, vault: nil, revision: revision)
    }

    /// Appends an entry of the caller, unless it stands in the log.
    ///
    /// - Returns: The vault's revision. Nil if the entry stands in the log.
    static func append(
        _ entry: Entry, _ keys: NewKeys?, _ vaultID: VaultID, _ seat: VaultSeat, in transaction: Transaction,
        now: Timestamp
    ) async throws -> Int64? {
        var stored = try await StoredLog(of: vaultID, in: transaction)
        if stored.contains(entry) { return nil }
        guard MemberID(entry.author.bytes) == seat.memberID else { throw VaultProblem.refused(.unknownAuthor) }
        return try await stored.append(entry, keys: keys, now: now)
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
