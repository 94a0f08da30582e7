import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// The short paths of a write decide what the full statements decide, or leave it to them.
@Suite struct ShortPathTests {
    @Test func `what is nearly always the case takes one statement, and all else the full one behind a lock`()
        async throws
    {
        try await TestApplication.with(connections: 1) { app in
            let ada = try await app.register()
            let path = "/v1/items/\(Fixtures.uuid())"
            let item = ItemTests.item()
            func executed(_ status: Int, _ request: () async throws -> TestResponse) async throws -> [String: Int64] {
                let before = try await app.executions()
                #expect(try await request().status == status)
                return try await app.executions().difference(from: before).filter { $0.key != "TouchSession" }
            }
            // What is counted first is stored in a statement of its own.
            func parts(_ name: String) -> [String: Int64] {
                switch name {
                case "CreateItem>": [name: 1, "StoreNewItem": 1]
                case "DeleteOneItem>": [name: 1, "ArchiveContent": 1, "WriteTombstone": 1]
                // Where a version is due, or where the first statement has changed nothing.
                case "ReplaceKeeping>": ["ReplaceItem>": 1, name: 1, "KeepReplaced": 1, "StoreReplacement": 1]
                default: [name: 1]
                }
            }
            func both(_ name: String, _ full: String) -> [String: Int64] {
                parts(name).merging(["AuthenticateForWrite": 1, full: 1]) { $1 }
            }
            // From then on the session is known.
            #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 404)
            let absent = ["If-None-Match": "*"]
            let present = ["If-Match": "*"]

            #expect(try await executed(201) { try await ada.client.put(path, item, absent) } == parts("CreateItem>"))
            #expect(
                try await executed(200) { try await ada.client.put(path, item, absent) }
                    == both("CreateItem>", "WriteItem>"), "the same again is unchanged")
            #expect(
                try await executed(200) { try await ada.client.put(path, item, present) }
                    == parts("ReplaceKeeping>"), "the same again: the full statement has a connection of its own")
            #expect(try await ada.client.get(path).integer("revision") == 1)
            #expect(
                try await executed(200) { try await ada.client.put(path, ItemTests.item(), present) }
                    == parts("ReplaceKeeping>"), "the first replacement keeps a version")
            #expect(
                try await executed(200) { try await ada.client.put(path, ItemTests.item(), present) }
                    == parts("ReplaceItem>"), "the next one within ten minutes does not")
            #expect(
                try await executed(412) { try await ada.client.put(path, item, ["If-Match": "\"1\""]) }
                    == parts("ReplaceKeeping>"))
            #expect(
                try await executed(200) { try await ada.client.delete(path, ["If-Match": "\"3\""]) }
                    == parts("DeleteOneItem>"))
            #expect(
                try await executed(404) { try await ada.client.delete(path, present) }
                    == parts("DeleteOneItem>"), "the full statement has a connection of its own")
            #expect(
                try await executed(201) { try await ada.client.put(path, item, absent) }
                    == both("CreateItem>", "WriteItem>"), "over a tombstone")
            #expect(
                try await executed(200) { try await ada.client.delete(path, present) }
                    == parts("DeleteOneItem>"), "of what it held before something is kept")
            #expect(
                try await executed(412) { try await ada.client.put(path, item, present) }
                    == parts("ReplaceKeeping>"))
            try await app.administer("UPDATE saltern.plans SET deleted_days = 0")
            let other = try await ada.createItem()
            #expect(
                try await executed(200) { try await ada.client.put(other, item, present) }
                    == parts("ReplaceItem>"), "a plan that keeps nothing")
        }
    }

    /// What one of two accounts does by whichever path there is, and the other by the full statements.
    private enum Change: CaseIterable {
        case create, recreate, replace, replaceRevision, again, delete, deleteRevision
    }

    @Test(arguments: ["max_items = 4", "deleted_days = 0", "max_items = 2", "max_bytes = 100"])
    func `whichever path a change takes, the same becomes of it`(_ limit: String) async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_items = 4, max_item_bytes = 70, max_bytes = 200")
            try await app.administer("UPDATE saltern.plans SET \(limit)")
            let short = try await app.register()
            let full = try await app.register()
            let caller = try app.caller(of: full.client)
            let ids = (0..<6).map { _ in ItemID.random() }
            let bodies = (0..<8).map { number in
                [UInt8](repeating: 0xFF, count: 3) + SecureRandom.bytes(20 + 9 * number)
            }
            for step in 0..<250 {
                let id = ids.randomElement() ?? ids[0]
                let bytes = bodies.randomElement() ?? bodies[0]
                let change = Change.allCases.randomElement() ?? .create
                let revision = try await short.client.get("/v1/items/\(id)").integer("revision") ?? 1
                let precondition: Precondition =
                    switch change {
                    case .create, .recreate: .absent
                    case .replace, .again, .delete: .present
                    case .replaceRevision, .deleteRevision: .revision(Int64(max(1, revision - Int.random(in: 0...1))))
                    }
                let fields =
                    switch precondition {
                    case .absent: ["If-None-Match": "*"]
                    case .present: ["If-Match": "*"]
                    case .revision(let revision): ["If-Match": EntityTag.text(of: revision)]
                    case .unmatched: ["If-Match": ""]
                    }
                let status: Int
                let outcome: ItemOutcome
                if change == .delete || change == .deleteRevision {
                    let decision = DecideDeletion(id: id, precondition: precondition)
                    status = try await short.client.delete("/v1/items/\(id)", fields).status
                    outcome = try await Self.bury(decision, caller, app)
                } else {
                    let body = try SealedBytes(bytes, format: .opaque)
                    let json: JSONValue = ["format": "opaque", "body": .string(Base64.encodeToString(bytes))]
                    status = try await short.client.put("/v1/items/\(id)", json, fields).status
                    let write = WriteItem(
                        id: id, precondition: precondition, collection: .standard, format: .opaque, iterations: nil,
                        title: nil, body: body)
                    outcome = try await Self.put(write, caller, app)
                }
                #expect(status == Self.status(of: outcome), "step \(step), \(change): \(outcome)")
            }
            #expect(try await app.execute(FindDifferences()) == [])
            for account in [short, full] {
                let id = try #require(AccountID(pathParameter: account.id))
                let counters = try #require(try await app.execute(CompareCounters(accountID: id)).first)
                #expect(counters.counted == counters.actual)
            }
        }
    }

    private static func put(_ write: WriteItem, _ caller: Caller, _ app: TestApplication) async throws -> ItemOutcome {
        let (postgres, lock) = (app.postgres, AuthenticateForWrite(caller: caller))
        return try await app.run {
            let change = try await postgres.execute(lock, Guarded(caller: caller, write: write)).1.first
            guard try #require(change).outcome == .vacant else { return try #require(change).outcome }
            let creation = CreateItem(write: write)
            let store = StoreNewItem(creation: creation, owner: OwnerID(caller.accountID), now: caller.now)
            _ = try #require(
                try await postgres.execute(Guarded(caller: caller, write: creation), store).0.first)
            return .created
        }
    }

    private static func bury(
        _ decision: DecideDeletion, _ caller: Caller, _ app: TestApplication
    ) async throws -> ItemOutcome {
        let postgres = app.postgres
        return try await app.run {
            let (_, rows, _, _) = try await postgres.execute(
                AuthenticateForWrite(caller: caller),
                Guarded(caller: caller, write: decision),
                ArchiveContent(decision: decision, owner: OwnerID(caller.accountID), now: caller.now),
                WriteTombstone(decision: decision, owner: OwnerID(caller.accountID), now: caller.now))
            return try #require(rows.first).change.outcome
        }
    }

    private static func status(of outcome: ItemOutcome) -> Int {
        switch outcome {
        case .created: 201
        case .updated, .deleted, .restored, .unchanged: 200
        case .notFound, .gone, .vacant: 404
        case .preconditionFailed: 412
        case .itemQuota, .itemByteQuota, .byteQuota: 403
        case .versionDue: 500
        }
    }

    /// What two accounts have that is not the same.
    private struct FindDifferences: Statement {
        typealias Row = String
        static let isReadOnly = true
        static let sql: SQL<Self> = """
            SELECT d.what FROM (
                SELECT format('item %s %s %s %s %s %s', i.item_id, i.revision, i.deleted, i.format, i.body,
                    i.updated_at) AS what
                FROM saltern.items i
                UNION ALL
                SELECT format('kept %s %s %s', k.item_id, k.body, k.expires_at) FROM saltern.deleted_contents k
                UNION ALL
                SELECT format('counts %s %s %s %s %s %s %s', a.revision, a.item_count, a.item_bytes,
                    a.tombstone_count, a.kept_count, a.kept_bytes, a.purged_revision)
                FROM saltern.accounts a
            ) d GROUP BY d.what HAVING count(*) <> 2
            """
    }

    @Test(arguments: [
        "UPDATE saltern.accounts SET locked_at = now()",
        "DELETE FROM saltern.sessions",
        "UPDATE saltern.sessions SET restricted = true",
        "UPDATE saltern.plans SET max_items = 1, max_bytes = 0",
        "UPDATE saltern.accounts SET tombstone_count = 2000, kept_count = 1000000, item_count = 1000000",
        "UPDATE saltern.plans SET deleted_days = 0, max_item_bytes = 1",
    ])
    func `a short path changes nothing when what it asks for has changed since its lock was asked for`(
        _ change: String
    ) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(ItemTests.item(plaintext: 10))
            let item = try #require(ItemID(pathParameter: String(path.dropFirst("/v1/items/".count))))
            let caller = try app.caller(of: ada.client)
            let body = try SealedBytes([UInt8](repeating: 0xFF, count: 3) + SecureRandom.bytes(57), format: .opaque)
            func put(_ id: ItemID, _ precondition: Precondition) -> WriteItem {
                WriteItem(
                    id: id, precondition: precondition, collection: .standard, format: .opaque, iterations: nil,
                    title: nil, body: body)
            }
            try await app.administer("UPDATE saltern.plans SET max_items = 1000")
            try await app.administer(change)
            let replacement = Guarded(caller: caller, write: ReplaceItem(write: put(item, .present)))
            let creation = Guarded(caller: caller, write: CreateItem(write: put(.random(), .absent)))
            let decision = Guarded(
                caller: caller, write: DeleteOneItem(decision: DecideDeletion(id: item, precondition: .present)))
            if !change.contains("item_count") { #expect(try await app.execute(replacement).isEmpty) }
            #expect(try await app.execute(creation).isEmpty)
            #expect(try await app.execute(decision).isEmpty)
        }
    }
}
