internal import HTTPCore

/// `DELETE /v1/account`: removes the caller's account and all its data permanently.
struct DeleteAccount: AccountEndpoint {
    /// Long enough for a very large account.
    static let deadline = Duration.seconds(600)

    private let proofs: ProofReader

    init(_ parts: Dependencies) {
        proofs = ProofReader(parts, for: .deleteAccount)
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(proofs.read(request))
        let deletion = AccountDeletion(
            accountID: proven.accountID, by: AuditSignature(actor: .account, now: proven.now))
        try await authorization.change(as: proven, use: authorization.longUse) { transaction in
            guard try await deletion.run(transaction) else { throw Unauthenticated() }
        }
        return .noContent
    }
}
