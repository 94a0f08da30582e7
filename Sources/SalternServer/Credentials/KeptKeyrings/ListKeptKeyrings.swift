internal import HTTPCore

/// `GET /v1/account/keyring/kept`: lists the caller's replaced keyrings that can be restored.
///
/// Like the keyring itself, they need only a session: they are sealed with the same password.
struct ListKeptKeyrings: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let kept = try await authorization.read(FindKeptKeyrings(now: authorization.now))
        let sealedCount = kept.reduce(0) { $0 + ($1.keyring?.count ?? 0) + ($1.recoveryKeyring?.count ?? 0) }
        return .json(capacity: 64 + 192 * kept.count + sealedCount * 4 / 3) { writer in
            writer.object { writer in
                writer.array("keyrings") { writer in
                    for keyring in kept { writer.object { keyring.write(to: &$0) } }
                }
            }
        }
    }
}
