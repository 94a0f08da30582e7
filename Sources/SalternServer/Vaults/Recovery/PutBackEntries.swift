internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `PUT /v1/vaults/{vault}/log`: puts entries back that a restored database lacks. The reply has the log's end: others
/// than the owner put back no entries of their own, nor those behind them.
struct PutBackEntries: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.seat(in: vaultID, atLeast: .reader)
        let entries = try await authorization.countingRefusal {
            let entries = try await JSONBody.readLarge(request) { try await $0.entries(request.pace) }
            guard let entries else { throw VaultProblem.malformedEntry }
            return entries
        }
        let (head, revision) = try await authorization.transaction(
            onLogOf: vaultID, atLeast: .reader, pace: request.pace
        ) { transaction, seat, stored in
            var stored = stored
            let revision = try await stored.putBack(entries, by: seat.memberID)
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
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.seat(in: vaultID, atLeast: .reader)
        let head = try JSONBody.read(request) { members in
            try members.required("head") { json in try JSONMembers.read(json) { try $0.head() } }
        }
        try await authorization.transaction(
            onLogOf: vaultID, atLeast: .reader, pace: request.pace
        ) { transaction, seat, stored in
            var stored = stored
            guard stored.isOwned(by: seat) else { throw VaultProblem.roleTooLow }
            guard let head, head == stored.log.head else {
                let known = head.map { stored.log.place(of: $0) == .known ? $0.number.value : 0 }
                throw try await stored.moved(since: known ?? 0)
            }
            stored.settle()
        }
        return .noContent
    }
}
