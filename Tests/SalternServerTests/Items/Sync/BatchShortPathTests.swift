import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// The short path of batches does what the full statement does.
@Suite struct BatchShortPathTests {
    private struct ItemRow: Statement {
        let accountID: AccountID

        struct Row: Sendable, Equatable {
            let id: ItemID
            let revision: Int64
            let isDeleted: Bool
            let collection: String
            let title: [UInt8]?
            let body: [UInt8]?
            let createdAt: Timestamp
            let updatedAt: Timestamp
        }

        static let isReadOnly = true
        static let sql: SQL<Self> = """
            SELECT item_id, revision, deleted, collection, title, body, created_at, updated_at
            FROM saltern.items WHERE account_id = \(\.accountID) ORDER BY item_id
            """

        static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
    }

    /// An account that gets its batches on one path.
    private struct Subject: Sendable {
        let account: TestAccount
        let caller: Caller

        init(_ app: TestApplication) async throws {
            account = try await app.register()
            let token = try #require(account.client.token)
            let bytes = try Base64URL.decode(Array(token.utf8.dropFirst(SessionToken.prefix.utf8.count)))
            let id = try #require(AccountID(pathParameter: account.id))
            let hash = TokenHash(SHA256.hash(Array(bytes.dropFirst(UUID.byteCount))))
            caller = Caller(
                SessionKey(accountID: id, tokenHash: hash), now: app.clock.now, policy: SessionPolicy())
        }
    }

    /// Few, so that what an operation puts is often what is there.
    private static let bodies = [30, 30, 31, 57].map { [0xFF, 0xFE, 0xFF] + SecureRandom.bytes($0) }

    private static func content(_ collection: String) throws -> ItemContent {
        let title = Bool.random() ? try SealedBytes(bodies[0], format: .opaque) : nil
        return ItemContent(
            format: .opaque, collection: CollectionName(collection), iterations: nil, title: title,
            body: try SealedBytes(bodies.randomElement() ?? bodies[0], format: .opaque))
    }

    private static func operations(_ ids: [ItemID], _ seen: [ItemRow.Row]) throws -> [BatchOperation] {
        try ids.shuffled().prefix(.random(in: 1...4)).map { id in
            let stored = seen.first { $0.id == id }
            let revision: Int64? = [nil, nil, 0, stored?.revision, 1].randomElement() ?? nil
            let isDeletion = Int.random(in: 0..<8) == 0
            return BatchOperation(
                id: id, ifRevision: isDeletion && revision == 0 ? nil : revision,
                content: isDeletion ? nil : try content(["one", "two"].randomElement() ?? "one"))
        }
    }

    /// What ``WriteBatch`` does with puts.
    private static func writeOnShortPath(
        _ puts: Puts, _ subject: Subject, _ app: TestApplication
    ) async throws -> Int64? {
        let (postgres, caller) = (app.postgres, subject.caller)
        return try await app.run {
            try await postgres.withTransaction { transaction in
                let weighing = MeasurePuts(puts: puts)
                let row = try await transaction.execute(Guarded(caller: caller, write: weighing)).first
                guard let effect = row.flatMap(weighing.effect(on:)) else { return nil }
                return try await ItemTransaction(transaction, of: caller.accountID).store(puts, effect, now: caller.now)
            }
        }
    }

    @Test func `batches leave the same items, counters and revisions on both paths`() async throws {
        try await TestApplication.with { app in
            // Little room, so that some batches find none.
            try await app.administer("UPDATE saltern.plans SET max_items = 6, max_bytes = 300, max_item_bytes = 67")
            let (short, full) = (try await Subject(app), try await Subject(app))
            let postgres = app.postgres
            let ids = (0..<8).map { _ in ItemID.random() }
            var counts = (short: 0, refused: 0, changed: 0)
            // Until there are enough of each kind, whatever chance brings.
            for round in 0..<5_000 {
                if round >= 300, counts.short > 20, counts.refused > 20, counts.changed > 20 { break }
                let before = try await app.execute(ItemRow(accountID: full.caller.accountID))
                let batch = ApplyBatch(operations: try Self.operations(ids, before))
                func apply(_ subject: Subject) async throws -> [ApplyBatch.Row] {
                    try await app.run {
                        try await postgres.withTransaction { transaction in
                            let caller = subject.caller
                            let rows = try await transaction.execute(Guarded(caller: caller, write: batch))
                            try await ItemTransaction(transaction, of: caller.accountID).store(batch, rows, now: caller.now)
                            return rows
                        }
                    }
                }
                let rows = try await apply(full)
                var last: Int64?
                if let puts = Puts(batch.operations) { last = try await Self.writeOnShortPath(puts, short, app) }
                if let last {
                    counts.short += 1
                    #expect(rows.first?.verdict == .accepted)
                    #expect(rows.map(\.revision) == rows.indices.map { last - Int64(rows.count - 1 - $0) })
                } else {
                    _ = try await apply(short)
                    if rows.first?.verdict == .accepted { counts.changed += 1 } else { counts.refused += 1 }
                }
                let after = try await app.execute(ItemRow(accountID: short.caller.accountID))
                #expect(try await app.execute(ItemRow(accountID: full.caller.accountID)) == after)
            }
            #expect(counts.short > 20 && counts.refused > 20 && counts.changed > 20, "\(counts)")
            for name in ["usage.items", "usage.bytes", "usage.deletedItems", "revision"] {
                let shortened = try await short.account.client.get("/v1/account").integer(name)
                #expect(try await full.account.client.get("/v1/account").integer(name) == shortened, "\(name)")
            }
            #expect(try await app.execute(FindWrongCounters()).isEmpty)
        }
    }

    @Test func `a batch of puts of one that is logged in nowhere changes nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let phone = try await app.logIn(ada)
            #expect(try await phone.delete("/v1/sessions/current").status == 204)
            let batch: JSONValue = ["operations": [BatchTests.put(Fixtures.uuid())]]
            #expect(try await phone.post("/v1/items/batch", batch).status == 401)
            try await app.administer("UPDATE saltern.accounts SET locked_at = now() WHERE account_id = '\(ada.id)'")
            #expect(try await ada.client.post("/v1/items/batch", batch).status == 401)
            #expect(try await ada.client.get("/v1/account").integer("usage.items") == 0)
        }
    }
}
