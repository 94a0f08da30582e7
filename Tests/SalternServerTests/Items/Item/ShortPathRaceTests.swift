import Cryptography
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// A change on the short path that has to wait for the account's row: it was decided on what was there before the wait.
@Suite struct ShortPathRaceTests {
    /// What somebody else does in the transaction that is waited for.
    enum Other: CaseIterable, Sendable {
        case endSessions, trimSessions, endThisSession, endOtherSessions
        case lockAccount, replace, delete, create, batch, mixedBatch
        case assignPlan, changeCredential, commitRotation, purgeTombstones, purgeContents, deleteAccount
        case lockOnly
    }

    /// What waits.
    enum Waiting: CaseIterable, Sendable {
        case replace, replaceKeeping, create, bury
    }

    private static let pairs = PropertyTests.cases(
        Other.allCases.flatMap { other in Waiting.allCases.map { (other, $0) } })

    @Test(arguments: pairs)
    func `what has waited for another change of the account changes nothing`(
        _ other: Other, _ waiting: Waiting
    ) async throws {
        try await TestApplication.with(connections: 2) { app in
            let scene = try await Scene(app, for: other)
            let (postgres, clock) = (app.postgres, app.clock)
            // Whether a version is due decides which of two statements replaces the item.
            try await app.administer(
                "UPDATE saltern.items SET kept_at = \(waiting == .replaceKeeping ? "NULL" : "updated_at")")
            // Some of it only an admin may do.
            let waiter = try await app.asOwner { admin in
                try await admin.withTransaction { transaction in
                    try await scene.carryOut(other, in: transaction, now: clock.now)
                    let waiter = Task { try await app.run { try await scene.attempt(waiting, postgres) } }
                    try await eventually {
                        try await app.execute(CountWaiting()) == [1]
                    }
                    return waiter
                }
            }
            let rows = try await waiter.value
            #expect(rows == (other == .lockOnly ? 1 : 0))
            let counters = try await app.execute(CompareCounters(accountID: scene.caller.accountID)).first
            #expect((counters == nil) == (other == .deleteAccount))
            #expect(counters?.counted == counters?.actual)
        }
    }

    struct Scene: Sendable {
        let app: TestApplication
        let account: TestAccount
        let caller: Caller
        let item: ItemID
        let vacant = ItemID.random()
        let body: SealedBytes
        /// Another session of the same account.
        let otherCaller: Caller
        /// An item that was deleted.
        let tombstone: ItemID
        /// With everything staged, when it is to be committed.
        var rotation: RotationID?

        init(_ app: TestApplication, for other: Other) async throws {
            self.app = app
            let ada = try await app.register()
            account = ada
            let path = try await ada.createItem(ItemTests.item(plaintext: 10))
            item = try #require(ItemID(pathParameter: String(path.dropFirst("/v1/items/".count))))
            caller = try app.caller(of: ada.client)
            otherCaller = try app.caller(of: try await app.logIn(ada))
            body = try SealedBytes([UInt8](repeating: 0xFF, count: 3) + SecureRandom.bytes(57), format: .opaque)
            let deleted = try await ada.createItem()
            #expect(try await ada.client.delete(deleted, ["If-Match": "*"]).status == 200)
            tombstone = try #require(ItemID(pathParameter: String(deleted.dropFirst("/v1/items/".count))))
            if other == .commitRotation {
                var opened = RotationClient(ada)
                try await opened.open()
                try await opened.stageAll()
                rotation = RotationID(pathParameter: opened.id)
            }
        }

        private func write(_ id: ItemID, _ precondition: Precondition) -> WriteItem {
            WriteItem(
                id: id, precondition: precondition, collection: .standard, format: .opaque, iterations: nil,
                title: nil, body: body)
        }

        /// - Returns: How many rows the statement had that decides.
        func attempt(_ waiting: Waiting, _ postgres: PostgresClient) async throws -> Int {
            try await postgres.withTransaction { try await change(waiting, in: $0) }
        }

        private func change(_ waiting: Waiting, in transaction: Transaction) async throws -> Int {
            let (account, now) = (caller.accountID, caller.now)
            switch waiting {
            case .replace:
                let replacement = ReplaceItem(write: write(item, .revision(1)))
                return try await transaction.execute(Guarded(caller: caller, write: replacement)).count
            case .replaceKeeping:
                let replacement = ReplaceKeeping(write: write(item, .revision(1)))
                return try await transaction.execute(
                    Guarded(caller: caller, write: replacement),
                    KeepReplaced(replacement: replacement, owner: OwnerID(account), now: now),
                    StoreReplacement(replacement: replacement, owner: OwnerID(account), now: now)
                ).2.count
            case .create:
                let creation = CreateItem(write: write(vacant, .absent))
                return try await transaction.execute(
                    Guarded(caller: caller, write: creation),
                    StoreNewItem(creation: creation, owner: OwnerID(account), now: now)
                ).0.count
            case .bury:
                let decision = DecideDeletion(id: item, precondition: .revision(1))
                return try await transaction.execute(
                    Guarded(caller: caller, write: DeleteOneItem(decision: decision)),
                    ArchiveContent(decision: decision, owner: OwnerID(account), now: now),
                    WriteTombstone(decision: decision, owner: OwnerID(account), now: now)
                ).0.count
            }
        }

        func carryOut(_ other: Other, in transaction: Transaction, now: Timestamp) async throws {
            _ = try await transaction.execute(LockAccount(accountID: caller.accountID))
            switch other {
            case .endSessions:
                try await end(
                    RemoveAllSessions(accountID: caller.accountID, exception: nil, now: now), 2, transaction)
            case .trimSessions:
                try await end(
                    TrimSessions(
                        accountID: caller.accountID, now: now, idleSince: caller.idleSince,
                        tokenHashes: [caller.tokenHash]), 1, transaction)
            case .endThisSession: try await end(RemoveCurrentSession(), as: caller, transaction)
            case .endOtherSessions: try await end(RemoveOtherSessions(), as: otherCaller, transaction)
            case .lockAccount:
                _ = try await transaction.execute(SetLock(accountID: caller.accountID, lockedAt: now))
            case .replace:
                let replaced = try await change(.replace, in: transaction)
                if replaced == 0 { #expect(try await change(.replaceKeeping, in: transaction) == 1) }
            case .delete: #expect(try await change(.bury, in: transaction) == 1)
            case .create: #expect(try await change(.create, in: transaction) == 1)
            case .batch: try await put(in: transaction)
            case .mixedBatch: try await putAndDelete(in: transaction)
            case .assignPlan:
                let plan = AssignPlan(accountID: caller.accountID, plan: "default")
                #expect(try await transaction.execute(plan).count == 1)
            case .changeCredential: try await changeCredential(in: transaction)
            case .commitRotation: try await commitRotation(in: transaction)
            case .purgeTombstones:
                let removal = RemoveTombstones(accountID: caller.accountID, before: now, itemIDs: [tombstone])
                #expect(try await transaction.execute(removal) == [1])
            case .purgeContents:
                let removal = RemoveContents(
                    accountID: caller.accountID, now: now + .seconds(86_400 * 4_000), itemIDs: [tombstone])
                #expect(try await transaction.execute(removal) == [1])
            case .deleteAccount:
                #expect(
                    try await AccountDeletion(
                        accountID: caller.accountID, by: AuditSignature(actor: .account, now: now)
                    ).run(transaction))
            case .lockOnly: break
            }
        }

        private func end<Removal: SessionRemoval>(
            _ removal: Removal, _ count: Int, _ transaction: Transaction
        ) async throws {
            #expect(try await transaction.execute(RecordSessionEnds(removal: removal), removal).1.count == count)
        }

        private func end<Removal: CallersSessionRemoval>(
            _ removal: Removal, as caller: Caller, _ transaction: Transaction
        ) async throws {
            let ended = try await transaction.execute(
                Guarded(caller: caller, write: RecordCallersSessionEnds(removal: removal)),
                Guarded(caller: caller, write: removal)
            ).1.count
            #expect(ended == 1)
        }
    }

    /// Who waits for a row that somebody else has locked.
    /// On a cluster it is the node with the rows where somebody waits.
    private struct CountWaiting: Statement {
        typealias Row = Int64
        static let isReadOnly = true
        static let sql: SQL<Self> = TestEnvironment.isCluster ? onAllNodes : here

        private static let here: SQL<Self> = """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
        private static let onAllNodes: SQL<Self> = """
            SELECT count(*) FROM citus_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
    }
}
