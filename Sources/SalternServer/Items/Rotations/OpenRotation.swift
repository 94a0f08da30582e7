internal import HTTPCore
internal import Postgres

/// `POST /v1/rotations`: opens a rotation and deletes an older one with its staged items.
struct OpenRotation: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(request)
        let id = RotationID.random()
        let expiresAt = proven.now + Rotation.lifetime
        let account = try await authorization.change(as: proven, use: authorization.longUse) { transaction in
            for older in try await transaction.execute(FindRotations(accountID: proven.accountID)) {
                try await StagedItems.remove(of: older, proven.accountID) { try await transaction.execute($0) }
                _ = try await transaction.execute(RemoveRotation(accountID: proven.accountID, id: older))
            }
            return try await transaction.execute(
                InsertRotation(accountID: proven.accountID, id: id, now: proven.now, expiresAt: expiresAt),
                FindExtent(accountID: proven.accountID)
            ).1.first
        }
        guard let account else { throw Unauthenticated() }
        return .json(.created) { writer in
            writer.object { writer in
                writer.member("id", id)
                writer.member("expiresAt", expiresAt)
                writer.member("items", account.items)
                writer.member("revision", account.revision)
            }
        }
    }
}
