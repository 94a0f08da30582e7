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
                    for vault in vaults { writer.object { writer in vault.write(to: &writer) } }
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
        return .json(capacity: 512 + members.count * 96) { writer in
            writer.object { writer in
                vault.write(to: &writer)
                writer.array("members") { writer in
                    for member in members {
                        writer.object { writer in
                            writer.member("id", member.id)
                            writer.member("departed", member.holder == nil)
                        }
                    }
                }
            }
        }
    }
}

extension VaultHeader {
    func write(to writer: inout JSONWriter) {
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
