internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `PUT /v1/vaults/{vault}/log`: puts entries back that a restored database lacks.
struct PutBackEntries: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        let vaultID: VaultID = try request.parameters.require("vault")
        let entries = try await JSONBody.readLarge(request) { try $0.entries() }
        guard let entries else { throw VaultProblem.malformedEntry }
        let (head, revision) = try await authorization.transaction(in: vaultID, atLeast: .reader) { transaction, _ in
            var stored = try await StoredLog(of: vaultID, in: transaction)
            let revision = try await stored.putBack(entries, now: authorization.now)
            return (stored.log.head, revision)
        }
        return .json { writer in
            writer.object { writer in
                writer.member("number", Int64(head.number.value))
                writer.member("hash", base64: head.hash.bytes)
                if let revision { writer.member("revision", revision) }
            }
        }
    }
}

/// `POST /v1/vaults/{vault}/recovered`: the owner's device reports that the log is complete again.
struct ReportRecovery: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        let vaultID: VaultID = try request.parameters.require("vault")
        let head = try JSONBody.read(request) { members in
            try members.required("head") { json in try JSONMembers.read(json) { try $0.head() } }
        }
        try await authorization.transaction(in: vaultID, atLeast: .manager) { transaction, seat in
            let stored = try await StoredLog(of: vaultID, in: transaction)
            guard stored.isOwned(by: seat) else { throw VaultProblem.roleTooLow }
            guard let head, head == stored.log.head else {
                throw stored.moved(since: head.map { stored.log.place(of: $0) == .known ? $0.number.value : 0 } ?? 0)
            }
            transaction.enqueue(EndRecovery(vaultID: vaultID))
        }
        return .noContent
    }
}
