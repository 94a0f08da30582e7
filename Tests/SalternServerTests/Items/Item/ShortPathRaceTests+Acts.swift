import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

// What is more than a statement, in the transaction that somebody waits for.
extension ShortPathRaceTests.Scene {
    private var operation: BatchOperation {
        let content = ItemContent(format: .opaque, collection: .standard, iterations: nil, title: nil, body: body)
        return BatchOperation(id: .random(), ifRevision: 0, content: content)
    }

    /// A batch of puts, on its short path.
    func put(in transaction: Transaction) async throws {
        let puts = try #require(Puts([operation]))
        let weighing = MeasurePuts(puts: puts)
        let row = try #require(try await transaction.execute(Guarded(caller: caller, write: weighing)).first)
        let effect = try #require(weighing.effect(on: row))
        #expect(try await ItemTransaction(transaction, of: caller.accountID).store(puts, effect, now: caller.now) != nil)
    }

    /// A batch that the full statement carries out.
    func putAndDelete(in transaction: Transaction) async throws {
        let batch = ApplyBatch(operations: [operation, BatchOperation(id: item, ifRevision: 1, content: nil)])
        let rows = try await transaction.execute(Guarded(caller: caller, write: batch))
        #expect(rows.first?.verdict == .accepted)
        try await ItemTransaction(transaction, of: caller.accountID).store(batch, rows, now: caller.now)
    }

    func changeCredential(in transaction: Transaction) async throws {
        let (proven, new) = (try await proven(in: transaction), try newCredential())
        _ = try await CredentialChange(by: proven, to: new, app.guarding).apply(transaction)
    }

    func commitRotation(in transaction: Transaction) async throws {
        let (proven, new) = (try await proven(in: transaction), try newCredential())
        let commit = RotationCommit(id: try #require(rotation), by: proven, to: new, app.guarding)
        #expect(try await commit.apply(transaction).items == 1)
    }

    /// The caller, who has shown the password key; his session stays.
    private func proven(in transaction: Transaction) async throws -> ProvenCaller {
        let userid = try Userid(account.userid)
        let login = try #require(try await transaction.execute(FindLogin(userid: userid)).first)
        return ProvenCaller(
            caller: caller, userid: userid, verifier: login.verifier, kdfIterations: login.kdfIterations,
            credentialRevision: login.credentialRevision, deviceGeneration: login.deviceGeneration,
            hasBeenReplaced: false)
    }

    private func newCredential() throws -> NewCredential {
        let members: JSONValue = [
            "passwordKey": .string(Fixtures.passwordKey("new")), "kdf": ["iterations": 600_000],
        ]
        return try JSONMembers.read(members) { try NewCredential(&$0, app.configuration.kdf) }
    }
}
