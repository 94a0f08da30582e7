internal import HTTPCore

/// `GET /v1/account/passkeys`: the passkeys of the account, the oldest first.
struct ListPasskeys: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let passkeys = try await authorization.read(FindPasskeys())
        return .json(capacity: 64 + passkeys.count * 320) { writer in
            writer.object { writer in
                writer.array("passkeys") { writer in
                    for passkey in passkeys { passkey.write(to: &writer) }
                }
            }
        }
    }
}
