internal import HTTPCore
internal import Postgres

/// `DELETE /v1/account`: removes the caller's account and all its data permanently.
struct DeleteAccount: AccountEndpoint {
    /// Long enough for a very large account.
    static let deadline = Duration.seconds(600)

    private let proofs: ProofReader

    init(_ parts: Dependencies) {
        proofs = ProofReader(parts, for: .deleteAccount)
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let (proof, deletesVaults) = try proofs.read(request) { members in
            try members.optional("vaults") { json in
                guard try json.string() == "delete" else { throw VaultProblem.unknownVaultChoice }
                return true
            } ?? false
        }
        guard let proof else { throw CurrentKeyMissing() }
        let proven = try await authorization.prove(proof)
        let deletion = AccountDeletion(
            accountID: proven.accountID, by: AuditSignature(actor: .account, now: proven.now))
        try await authorization.change(as: proven, use: authorization.longUse) { transaction in
            let memberships = try await transaction.execute(
                Owned(accountID: proven.accountID, read: FindMemberships()))
            if !deletesVaults, memberships.contains(where: \.owns) { throw VaultProblem.ownsVaults }
            guard try await deletion.run(transaction) else { throw Unauthenticated() }
        }
        return .noContent
    }
}
