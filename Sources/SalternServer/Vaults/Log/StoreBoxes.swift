internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `PUT /v1/vaults/{vault}/boxes`: a manager makes boxes of the present generation and keys of earlier ones again.
///
/// Members verify them by the commitments in the log, so the server does not have to.
struct StoreBoxes: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.seat(in: vaultID, atLeast: .manager)
        let (generation, boxes, previousKeys) = try await JSONBody.readLarge(request) { members in
            (
                try members.required("generation") { json in try json.integer() },
                try members.optional("boxes", KeyBox.list) ?? [],
                try members.optional("previousKeys", PreviousKey.list) ?? []
            )
        }
        try await authorization.transaction(
            onLogOf: vaultID, atLeast: .manager, pace: request.pace
        ) { transaction, _, stored in
            let log = stored.log
            guard generation == Int64(log.currentGeneration.number.value) else { throw VaultProblem.staleGeneration }
            let members = Set(log.presentMembers.map { MemberID($0.id.bytes) })
            guard Set(boxes.map(\.member)).isSubset(of: members), boxes.count <= members.count,
                Set(boxes.map(\.member)).count == boxes.count,
                previousKeys.allSatisfy({ $0.generation > 1 && $0.generation <= generation }),
                Set(previousKeys.map(\.generation)).count == previousKeys.count
            else { throw VaultProblem.invalidBoxes }
            transaction.enqueue(
                InsertBoxes(
                    vaultID: vaultID, generation: generation, members: boxes.map(\.member), boxes: boxes.map(\.box)))
            transaction.enqueue(
                InsertPreviousKeys(
                    vaultID: vaultID, generations: previousKeys.map(\.generation), keys: previousKeys.map(\.key)))
        }
        return .noContent
    }
}

/// The key before a generation, sealed with the generation's key.
struct PreviousKey: Sendable {
    let generation: Int64
    let key: [UInt8]

    /// Reads `[{generation, key}]`.
    static func list(_ json: JSONValue) throws -> [PreviousKey] {
        let keys = try json.array()
        guard keys.count <= SharedVault.previousKeysAtOnce else { throw VaultProblem.invalidBoxes }
        return try keys.map { json in
            try JSONMembers.read(json) { members in
                PreviousKey(
                    generation: try members.required("generation") { json in try json.integer() },
                    key: try members.required("key", KeyBox.previousKey))
            }
        }
    }
}

/// `DELETE /v1/vaults/{vault}/boxes/mine`: removes the caller's box, which does not open. Managers make another one.
struct RemoveOwnBox: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        // Without a box, the vault is not locked.
        let find = FindBoxes(vaultID: vaultID, accountID: authorization.accountID)
        if try await authorization.read(find, in: vaultID).isEmpty { return .noContent }
        try await authorization.transaction(in: vaultID, atLeast: .reader, lane: .log) { transaction, seat in
            transaction.enqueue(RemoveBox(vaultID: vaultID, memberID: seat.memberID))
        }
        return .noContent
    }
}
