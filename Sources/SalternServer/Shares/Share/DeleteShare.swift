internal import HTTPCore
internal import Postgres

/// `DELETE /v1/shares/{id}`: deletes a share, with its manage token or a session of the account that owns it.
struct DeleteShare: AccountEndpoint, OpenEndpoint {
    private let search: ShareSearch

    init(_ parts: Dependencies) { search = ShareSearch(parts) }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        guard let id = ShareID(text: request.parameters["id"]) else { throw Problem.notFound }
        let owner = authorization.accountID
        let now = authorization.now
        let wasOpen = try await authorization.transaction { transaction in
            try await Self.remove(RemoveShare(id: id, now: now, manager: .owner(owner)), in: transaction)
        }
        guard wasOpen else { throw Problem.notFound }
        return .noContent
    }

    func respond(to request: Request) async throws -> Response {
        let now = search.clock.now
        // Found first, so that a wrong token occupies no dedicated connection.
        let (id, token, owner) = try await search.managed(request, now: now)
        let remove = RemoveShare(id: id, now: now, manager: .token(token.hash))
        let wasOpen = try await search.database.withTransaction(key: .share(id, of: owner)) { transaction in
            try await Self.remove(remove, lockingFirst: owner ?? .nobody, in: transaction)
        }
        guard wasOpen else { throw Problem.notFound }
        return .noContent
    }

    private static func remove(
        _ remove: RemoveShare, lockingFirst owner: AccountID, in transaction: Transaction
    ) async throws -> Bool {
        _ = try await transaction.execute(LockAccount(accountID: owner))
        return try await self.remove(remove, in: transaction)
    }

    /// Removes both rows. The owner's account must be locked.
    ///
    /// - Returns: True if the share was still open.
    private static func remove(_ remove: RemoveShare, in transaction: Transaction) async throws -> Bool {
        guard let removed = try await transaction.execute(remove).first else { return false }
        _ = try await transaction.execute(
            RemoveAccountShares(accountID: removed.owner ?? .nobody, ids: [remove.id]))
        return removed.wasOpen
    }
}
