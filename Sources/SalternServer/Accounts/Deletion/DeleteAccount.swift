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
        var proven = try await authorization.prove(proof)
        let vaults = try await Self.ownVaults(authorization)
        if !vaults.isEmpty {
            guard deletesVaults else { throw VaultProblem.ownsVaults }
            // Uses an assertion up before anything is deleted.
            try await authorization.change(as: proven) { _ in }
            proven.passkeyUse = nil
            // Each in a transaction of its own: a repeated request goes on with the others.
            for vault in vaults { try await Self.delete(vault, authorization) }
        }
        let deletion = AccountDeletion(
            accountID: proven.accountID, by: AuditSignature(actor: .account, now: proven.now))
        try await authorization.change(as: proven, use: authorization.longUse) { transaction in
            guard try await deletion.run(transaction) else { throw Unauthenticated() }
        }
        return .noContent
    }

    /// Deletes a vault, unless another request has deleted it or handed it over meanwhile.
    private static func delete(_ vault: VaultID, _ authorization: Authorization) async throws {
        do {
            try await DeleteVault.delete(vault, authorization)
        } catch let problem as Problem where problem.status == .notFound {
            return
        } catch VaultProblem.roleTooLow {
            return
        }
    }

    /// Finds the vaults that the account owns by its list, and by their logs.
    private static func ownVaults(_ authorization: Authorization) async throws -> [VaultID] {
        var vaults: [VaultID] = []
        for membership in try await authorization.read(FindMemberships()) {
            let find = IsOwner(vaultID: membership.vaultID, accountID: authorization.accountID)
            if try await !authorization.database.execute(find).isEmpty { vaults.append(membership.vaultID) }
        }
        return vaults
    }
}
