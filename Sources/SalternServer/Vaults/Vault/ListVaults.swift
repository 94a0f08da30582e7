internal import HTTPCore
internal import Postgres

/// `GET /v1/vaults`: lists the vaults that the caller is a member of.
struct ListVaults: AccountEndpoint {
    private let database: PostgresClient

    init(_ parts: Dependencies) { database = parts.database }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let ids = try await authorization.read(FindMemberships()).map(\.vaultID)
        let vaults =
            ids.isEmpty
            ? [] : try await database.execute(FindVaults(ids: ids, accountID: authorization.accountID))
        return .json(capacity: 64 + vaults.count * 512) { writer in
            writer.object { writer in
                writer.array("vaults") { writer in
                    for vault in vaults {
                        writer.object { writer in vault.write(to: &writer, now: authorization.now) }
                    }
                }
            }
        }
    }
}

/// `GET /v1/vaults/{vault}`: returns a vault with its members.
struct ShowVault: AccountEndpoint {
    private let database: PostgresClient

    init(_ parts: Dependencies) { database = parts.database }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: VaultID = try request.parameters.require("vault")
        let find = FindVaults(ids: [id], accountID: authorization.accountID)
        guard let vault = try await authorization.read(find, in: id).first else { throw Problem.notFound }
        let members = try await authorization.read(FindMembers(vaultID: id), in: id)
        let live = Set(
            try await database.execute(FindUnlockedAccounts(ids: members.compactMap(\.holder))))
        return .json(capacity: 512 + members.count * 320) { writer in
            writer.object { writer in
                vault.write(to: &writer, now: authorization.now)
                writer.array("members") { writer in
                    for member in members {
                        let isLive = member.holder.map { live.contains($0) } ?? false
                        writer.object { writer in member.write(to: &writer, isDeparted: !isLive) }
                    }
                }
            }
        }
    }
}

/// Finds the accounts among `ids` that exist and are not locked.
struct FindUnlockedAccounts: Statement {
    typealias Row = AccountID

    let ids: [AccountID]

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.account_id FROM saltern.accounts a
        WHERE a.account_id = ANY(\(\.ids)::uuid[]) AND a.locked_at IS NULL
        """
}

extension FindMembers.Row {
    fileprivate func write(to writer: inout JSONWriter, isDeparted: Bool) {
        writer.member("id", id)
        writer.member("departed", isDeparted)
        writer.member("boxMissing", isBoxMissing)
        guard let seenHash, let seenSignature else { return }
        writer.object("seen") { writer in
            writer.member("number", seenNumber)
            writer.member("hash", base64: seenHash)
            writer.member("signature", base64: seenSignature)
        }
    }
}

extension VaultHeader {
    func write(to writer: inout JSONWriter, now: Timestamp) {
        writer.member("id", id)
        writer.member("memberId", memberID)
        writer.member("role", role.name)
        writer.member("owner", isOwner)
        writer.member("revision", revision)
        writer.object("head") { writer in
            writer.member("number", headNumber)
            writer.member("hash", base64: headHash)
        }
        writer.member("rotationDue", isRotationDue)
        writer.member("boxMissing", isBoxMissing)
        if let end = VaultRecovery.end(began: recoveryBegan, now: now) { writer.member("recoveringUntil", end) }
        writer.object("usage") { writer in
            writer.member("items", itemCount)
            writer.member("bytes", itemBytes)
        }
        writer.object("limits") { writer in
            writer.member("items", maxItems)
            writer.member("itemBytes", maxItemBytes)
            writer.member("bytes", maxBytes)
            writer.member("members", maxMembers)
            writer.member("deletedDays", Int64(deletedDays))
        }
        writer.member("createdAt", createdAt)
    }
}
