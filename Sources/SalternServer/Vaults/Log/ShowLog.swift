internal import HTTPCore
internal import Postgres

/// `GET /v1/vaults/{vault}/log`: returns the entries above the number `after`, and the caller's key boxes.
struct ShowLog: AccountEndpoint {
    /// Maximum number of entries in a reply.
    private static let limit: Int64 = 500

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        let after = Int64(try request.query.optional("after", as: Int.self) ?? 0)
        guard after >= 0 else {
            throw Problem(.badRequest, "invalid_parameter", detail: "`after` must be a number.", field: "after")
        }
        var (entries, boxes, previousKeys, seals) = try await authorization.read(
            FindEntries(vaultID: vaultID, after: after, limit: Self.limit + 1),
            FindBoxes(vaultID: vaultID, accountID: authorization.accountID), FindPreviousKeys(vaultID: vaultID),
            FindSeals(vaultID: vaultID), in: vaultID)
        let isFollowed = entries.count > Int(Self.limit)
        if isFollowed { entries.removeLast() }
        return .json(capacity: 128 + entries.reduce(0) { $0 + $1.count * 4 / 3 + 8 }) { writer in
            writer.object { writer in
                writer.array("entries") { writer in for entry in entries { writer.string(base64: entry) } }
                writer.member("more", isFollowed)
                writer.array("boxes") { writer in
                    for box in boxes {
                        writer.object { writer in
                            writer.member("generation", box.generation)
                            writer.member("box", base64: box.box)
                        }
                    }
                }
                writer.array("previousKeys") { writer in
                    for key in previousKeys {
                        writer.object { writer in
                            writer.member("generation", key.generation)
                            writer.member("key", base64: key.key)
                        }
                    }
                }
                writer.array("seals") { writer in for number in seals { writer.integer(number) } }
            }
        }
    }
}
