import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Older versions and what deleted items held have one budget, of which versions have what is left.
@Suite struct VersionBudgetTests {
    private static let plan = StorageBound(items: 4, itemBytes: 400, bytes: 1_000, sessions: 3, shares: 3)

    private static func with(_ body: (TestApplication, TestAccount) async throws -> Void) async throws {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            try await app.setPlan(Self.plan)
            let ada = try await app.register()
            try await body(app, ada)
        }
    }

    private static func replace(_ path: String, _ account: TestAccount, _ app: TestApplication) async throws {
        app.clock.advance(by: ItemVersion.interval)
        let reply = try await account.client.put(path, StorageBoundTests.item(60), ["If-Match": "*"])
        #expect(reply.status == 200, "\(reply)")
        try await app.expectBounds(plan, of: account.id, "a replacement")
    }

    @Test func `the versions that expire first make room, by number and by bytes`() async throws {
        try await Self.with { app, ada in
            let path = try await ada.createItem(StorageBoundTests.item(60))
            for _ in 0..<6 { try await Self.replace(path, ada, app) }
            #expect(try await VersionTests.revisions(path, ada.client) == [6, 5, 4, 3])
            // 88 bytes each; the largest leaves room for one more.
            let large = try await ada.createItem(StorageBoundTests.item(372))
            try await app.administer("UPDATE saltern.plans SET max_bytes = 500")
            app.clock.advance(by: ItemVersion.interval)
            #expect(try await ada.client.put(large, StorageBoundTests.item(60), ["If-Match": "*"]).status == 200)
            #expect(try await VersionTests.revisions(path, ada.client) == [6])
            #expect(try await VersionTests.revisions(large, ada.client).count == 1)
        }
    }

    @Test func `a version pushes out nothing that a deleted item held, and a deletion pushes out versions`()
        async throws
    {
        try await Self.with { app, ada in
            let path = try await ada.createItem(StorageBoundTests.item(60))
            for _ in 0..<4 { try await Self.replace(path, ada, app) }
            #expect(try await VersionTests.revisions(path, ada.client).count == 4)
            var deleted: [String] = []
            for number in 1...3 {
                let gone = try await ada.createItem(StorageBoundTests.item(60))
                if number == 2 {
                    let operations: JSONValue = ["operations": [BatchTests.delete(String(gone.suffix(36)))]]
                    #expect(try await ada.client.post("/v1/items/batch", operations).status == 200)
                } else {
                    #expect(try await ada.client.delete(gone, ["If-Match": "*"]).status == 200)
                }
                deleted.append(gone)
                try await app.expectBounds(Self.plan, of: ada.id, "deletion \(number)")
                #expect(try await VersionTests.revisions(path, ada.client).count == 4 - number)
                #expect(try await ada.client.get("/v1/account").integer("usage.deletedItems") == number)
            }
            // One place is left, for the latest version.
            try await Self.replace(path, ada, app)
            #expect(try await VersionTests.revisions(path, ada.client).count == 1)
            let last = try await ada.createItem(StorageBoundTests.item(60))
            #expect(try await ada.client.delete(last, ["If-Match": "*"]).status == 200)
            // No place is left: the item is replaced, and nothing of it is kept.
            try await Self.replace(path, ada, app)
            #expect(try await VersionTests.revisions(path, ada.client) == [])
            for gone in deleted + [last] {
                let restored = try await ada.client.send(.post, gone + "/restore", fields: ["If-Match": "*"])
                #expect(restored.status == (gone == last ? 403 : 200), "\(restored)")
            }
        }
    }

    @Test func `a version that has no room costs the next replacements nothing`() async throws {
        try await TestApplication.with(connections: 1) { app in
            try await app.setPlan(Self.plan)
            let ada = try await app.register()
            for _ in 0..<4 {
                let gone = try await ada.createItem(StorageBoundTests.item(60))
                #expect(try await ada.client.delete(gone, ["If-Match": "*"]).status == 200)
            }
            let path = try await ada.createItem(StorageBoundTests.item(60))
            try await Self.put(path, ada)
            let before = try await app.executions()
            try await Self.put(path, ada)
            #expect(
                try await app.executions().difference(from: before).filter { $0.key != "TouchSession" }
                    == ["ReplaceItem>": 1])
        }
    }

    private static func put(_ path: String, _ account: TestAccount) async throws {
        #expect(try await account.client.put(path, StorageBoundTests.item(60), ["If-Match": "*"]).status == 200)
    }

    @Test(arguments: [false, true])
    func `of a batch the last versions that have room are kept`(_ deletes: Bool) async throws {
        try await Self.with { app, ada in
            var ids: [String] = []
            for _ in 0..<4 {
                ids.append(String(try await ada.createItem(StorageBoundTests.item(60)).suffix(36)))
            }
            for _ in 0..<2 {
                // A plan with two places: the versions of the first two items do not have any.
                try await app.administer("UPDATE saltern.plans SET max_items = 2")
                var operations = ids.map { BatchTests.put($0, nil, StorageBoundTests.item(60)) }
                if deletes { operations[0] = BatchTests.delete(ids[0]) }
                app.clock.advance(by: ItemVersion.interval)
                let reply = try await ada.client.post("/v1/items/batch", ["operations": .array(operations)])
                #expect(reply.status == 200, "\(reply)")
                var kept: [Int] = []
                for id in ids { kept.append(try await VersionTests.revisions("/v1/items/\(id)", ada.client).count) }
                #expect(kept == (deletes ? [0, 0, 0, 1] : [0, 0, 1, 1]))
                let id = try #require(AccountID(pathParameter: ada.id))
                let counters = try #require(try await app.execute(CompareCounters(accountID: id)).first)
                #expect(counters.counted == counters.actual)
            }
        }
    }

    @Test func `a plan that was lowered comes down with the next changes, in slices`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(StorageBoundTests.item(60))
            try await app.administer(
                """
                INSERT INTO saltern.replaced_contents (account_id, item_id, revision, collection, format, body, created_at,
                    updated_at, replaced_at, expires_at)
                SELECT '\(ada.id)', gen_random_uuid(), n, 'default', 'opaque', '\\x00', '2026-01-01', '2026-01-01',
                    '2026-01-01', '2026-01-20' FROM generate_series(1, 2500) n;
                UPDATE saltern.accounts SET version_count = 2500, version_bytes = 2500 WHERE account_id = '\(ada.id)';
                UPDATE saltern.plans SET max_items = 10
                """)
            var left: [Int?] = []
            for _ in 0..<3 {
                app.clock.advance(by: ItemVersion.interval)
                #expect(try await ada.client.put(path, StorageBoundTests.item(60), ["If-Match": "*"]).status == 200)
                left.append(try await ada.client.get("/v1/account").integer("usage.versions"))
            }
            #expect(left == [1_500, 500, 10])
            #expect(try await VersionTests.revisions(path, ada.client).count == 1)
        }
    }

    @Test func `a deletion removes as many versions as it takes, in slices`() async throws {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            let plan = StorageBound(items: 5_000, itemBytes: 4_096, bytes: 5_000, sessions: 3, shares: 3)
            try await app.setPlan(plan)
            let ada = try await app.register()
            try await app.administer(
                """
                INSERT INTO saltern.replaced_contents (account_id, item_id, revision, collection, format, body, created_at,
                    updated_at, replaced_at, expires_at)
                SELECT '\(ada.id)', gen_random_uuid(), n, 'default', 'opaque', '\\x00', '2026-01-01', '2026-01-01',
                    '2026-01-01', '2026-01-20' FROM generate_series(1, 5000) n;
                UPDATE saltern.accounts SET version_count = 5000, version_bytes = 5000 WHERE account_id = '\(ada.id)'
                """)
            let path = try await ada.createItem(StorageBoundTests.item(4_000))
            #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 200)
            try await app.expectBounds(plan, of: ada.id, "the deletion")
            #expect(try await ada.client.send(.post, path + "/restore", fields: ["If-Match": "*"]).status == 200)
        }
    }

    @Test func `counters of versions that are not there hold up neither a deletion nor a replacement`() async throws {
        try await Self.with { app, ada in
            let path = try await ada.createItem(StorageBoundTests.item(60))
            let gone = try await ada.createItem(StorageBoundTests.item(60))
            let wrong = "UPDATE saltern.accounts SET version_count = 4, version_bytes = 1000"
            try await app.administer(wrong)
            #expect(try await ada.client.delete(gone, ["If-Match": "*"]).status == 200)
            try await app.expectBounds(Self.plan, of: ada.id, "a deletion")
            #expect(try await ada.client.send(.post, gone + "/restore", fields: ["If-Match": "*"]).status == 200)
            try await app.administer(wrong)
            try await Self.replace(path, ada, app)
            try await Self.replace(path, ada, app)
            #expect(try await VersionTests.revisions(path, ada.client).isEmpty == false)
        }
    }
}
