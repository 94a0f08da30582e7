import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Whatever an account does, what is stored of it is bounded by its plan, at every moment.
@Suite struct StorageBoundTests {
    static let tiny = StorageBound(items: 6, itemBytes: 200, bytes: 600, sessions: 3, shares: 3)

    @Test(arguments: PropertyTests.databases)
    func `random work on every route that writes stays within the plan after every step`(_ seed: UInt64) async throws {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            try await app.setPlan(Self.tiny)
            var work = try await StorageWork(app, seed: seed)
            try await Self.fillTombstones(app, of: work.account.id)
            // Until enough kinds of work are done, whatever chance brings.
            for step in 1...5_000 {
                if step > 220, work.done.count > 20 { break }
                let name = try await work.step()
                try await app.expectBounds(Self.tiny, of: work.account.id, "step \(step) of \(seed), \(name)")
                let counters = try await app.execute(CountFailureCounters()).first ?? 0
                #expect(counters <= 18 * Int64(work.userids), "step \(step) of \(seed), \(name)")
            }
            #expect(work.done.count > 20, "\(work.done.sorted { $0.key < $1.key })")
        }
    }

    /// As many as an account may have beside those of its plan's items.
    static func fillTombstones(_ app: TestApplication, of account: String) async throws {
        try await app.administer(
            """
            INSERT INTO saltern.items (account_id, item_id, revision, deleted, collection, created_at, updated_at)
            SELECT '\(account)', gen_random_uuid(), n, true, 'default', '2026-01-01', '2026-01-01'
            FROM generate_series(1, 1000) n
            """)
        try await app.administer(
            "UPDATE saltern.accounts SET revision = 1000, tombstone_count = 1000 WHERE account_id = '\(account)'")
    }

    @Test func `a full account makes room by deleting, and what was deleted first is restorable no more`() async throws
    {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            let plan = StorageBound(items: 10, itemBytes: 128, bytes: 400, sessions: 3, shares: 3)
            try await app.setPlan(plan)
            let ada = try await app.register()
            var paths: [String] = []
            for round in 0..<5 {
                // 128 bytes each: three fit.
                for _ in 0..<3 { paths.append(try await ada.createItem(Self.item(100))) }
                #expect(
                    try await ada.client.put(
                        "/v1/items/\(Fixtures.uuid())", Self.item(100), ["If-None-Match": "*"]
                    ).code == "quota_exceeded")
                for path in paths.suffix(3) {
                    app.clock.advance(by: .seconds(1))
                    let deleted = try await ada.client.delete(path, ["If-Match": "*"])
                    #expect(deleted.status == 200, "\(deleted)")
                    #expect(deleted.string("restorableUntil")?.hasPrefix("2026-01-31T00:00:") == true)
                    try await app.expectBounds(plan, of: ada.id, "round \(round)")
                }
                let account = try await ada.client.get("/v1/account")
                #expect(account.integer("usage.items") == 0)
                #expect(account.integer("usage.deletedItems") == 3)
                #expect(account.integer("usage.deletedBytes") == 384)
            }
            for (index, path) in paths.enumerated() {
                let reply = try await ada.client.send(.post, path + "/restore", fields: ["If-Match": "*"])
                #expect(reply.status == (index < 12 ? 410 : 200), "\(index) \(reply)")
            }
        }
    }

    @Test func `a batch keeps the latest of what it deletes, within the budget`() async throws {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            let plan = StorageBound(items: 10, itemBytes: 128, bytes: 1_280, sessions: 3, shares: 3)
            try await app.setPlan(plan)
            let ada = try await app.register()
            var ids: [String] = []
            for _ in 0..<10 {
                ids.append(String(try await ada.createItem(Self.item(100)).dropFirst("/v1/items/".count)))
            }
            // A plan that became smaller: of what is deleted now, four have room.
            try await app.setPlan(StorageBound(items: 4, itemBytes: 128, bytes: 1_280, sessions: 3, shares: 3))
            let reply = try await ada.client.post(
                "/v1/items/batch", ["operations": .array(ids.map { BatchTests.delete($0) })])
            #expect(reply.status == 200, "\(reply)")
            #expect(try await ada.client.get("/v1/account").integer("usage.deletedItems") == 4)
            for (index, id) in ids.enumerated() {
                let restored = try await ada.client.send(
                    .post, "/v1/items/\(id)/restore", fields: ["If-Match": "*"])
                #expect(restored.status == (index < 6 ? 410 : 200), "\(index) \(restored)")
            }
        }
    }

    @Test func `very many kept contents that are in the way go in slices, and the deletion succeeds`() async throws {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            let plan = StorageBound(items: 5_000, itemBytes: 4_096, bytes: 5_000, sessions: 3, shares: 3)
            try await app.setPlan(plan)
            let ada = try await app.register()
            try await app.administer(
                """
                INSERT INTO saltern.deleted_contents
                    (account_id, item_id, collection, format, body, created_at, expires_at)
                SELECT '\(ada.id)', gen_random_uuid(), 'default', 'opaque', '\\x00', '2026-01-01', '2026-01-20'
                FROM generate_series(1, 5000) n;
                UPDATE saltern.accounts SET kept_count = 5000, kept_bytes = 5000 WHERE account_id = '\(ada.id)'
                """)
            let path = try await ada.createItem(Self.item(4_000))
            // One slice, as the deletion takes several.
            let token = try #require(ada.client.token)
            let caller = try Caller(
                PresentedToken(RequestFieldsFixture.bearer(token)), now: app.clock.now, policy: SessionPolicy())
            let drop = DropContents(room: NeededRoom(items: 5_000, bytes: 0))
            #expect(try await app.execute(Guarded(caller: caller, write: drop)) == [1_000])
            try await app.expectBounds(plan, of: ada.id, "a slice")
            let deleted = try await ada.client.delete(path, ["If-Match": "*"])
            #expect(deleted.status == 200, "\(deleted)")
            try await app.expectBounds(plan, of: ada.id, "the deletion")
            // 973 have room; up to 63 more may have gone.
            let left = try #require(try await ada.client.get("/v1/account").integer("usage.deletedItems"))
            #expect((910...973).contains(left))
            #expect(try await ada.client.send(.post, path + "/restore", fields: ["If-Match": "*"]).status == 200)
        }
    }

    @Test func `beyond the limit the oldest tombstones go, and the cursors that have not seen them`() async throws {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            try await app.setPlan(Self.tiny)
            let ada = try await app.register()
            try await Self.fillTombstones(app, of: ada.id)
            // Four more than there may be, once the plan's six are used up: the first of them removes its own and 63.
            let highest = 1 + Int64(TombstoneLimit.reserve)
            let cursors = [highest - 1, highest, 1_000].map { SyncCursor(revision: $0, floor: $0).text }
            for _ in 0..<10 {
                let path = try await ada.createItem()
                #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 200)
                try await app.expectBounds(Self.tiny, of: ada.id, "a deletion")
            }
            let replies = try await [
                ada.client.get("/v1/changes?since=\(cursors[0])&limit=1"),
                ada.client.get("/v1/changes?since=\(cursors[1])&limit=1"),
                ada.client.get("/v1/changes?since=\(cursors[2])&limit=100"),
            ]
            #expect(replies.map(\.status) == [410, 200, 200])
            #expect(replies[2].array("changes")?.count == 10)
        }
    }

    @Test func `shares that have ended make room for others at once`() async throws {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            try await app.setPlan(Self.tiny)
            let ada = try await app.register()
            for round in 0..<4 {
                for _ in 0..<3 {
                    let end = "2026-01-01T00:00:\(10 + round)Z"
                    _ = try await TestShare(ada.client, ShareFixtures.content(["expiresAt": .string(end)]))
                }
                let refused = try await ada.client.post("/v1/shares", ShareFixtures.content())
                #expect(refused.code == "quota_exceeded", "\(refused)")
                #expect(refused.integer("used") == 3)
                try await app.expectBounds(Self.tiny, of: ada.id, "round \(round)")
                app.clock.advance(by: .seconds(round == 0 ? 10 : 1))
                #expect(try await ada.client.get("/v1/account").integer("usage.shares") == 0)
            }
        }
    }

    @Test func `a flood of one kind of event pushes out nothing of another`() async throws {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            let ada = try await app.register()
            #expect(try await ada.setRecovery(RecoveryTests.code).status == 200)
            for number in 1...130 {
                app.clock.advance(by: .seconds(1))
                _ = try await ada.client.put("/v1/account/receipt", ["receipt": .string("receipt \(number)")])
            }
            let first = try await ada.client.get("/v1/account/events?limit=100")
            let next = try #require(first.string("nextPage"))
            let second = try await ada.client.get("/v1/account/events?limit=100&page=\(next)")
            let kinds = try ((first.array("events") ?? []) + (second.array("events") ?? [])).map {
                try $0.object()["kind"]?.string() ?? ""
            }
            #expect((100...130).contains(kinds.filter { $0 == "receipt_changed" }.count))
            #expect(kinds.filter { $0 == "recovery_set" }.count == 1)
            // The latest are those that are kept.
            #expect(first.string("events.0.occurredAt") == "2026-01-01T00:02:10.000Z")
        }
    }

    @Test func `an event that removes those beyond the limit leaves a hundred of its kind, and others remove none`()
        async throws
    {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            let ada = try await app.register()
            try await app.administer(
                """
                INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind)
                SELECT '\(ada.id)', '2026-01-01'::timestamptz + n * interval '1 second', gen_random_uuid(), 'exported'
                FROM generate_series(1, 150) n
                """)
            let id = try #require(AccountID(pathParameter: ada.id))
            var stored: [Int64] = []
            for low in [1, 16] as [UInt64] {
                let event = RecordSecurityEvent(
                    accountID: id, kind: .exported, now: app.clock.now,
                    id: SecurityEventID(UUID(high: 1, low: low)))
                _ = try await app.execute(event)
                _ = try await app.execute(DropOldEvents(after: event))
                let amounts = try await app.execute(FindStoredAmounts(accountID: id))
                stored.append(amounts.first { $0.name == "security_events" }?.amount.rows ?? 0)
            }
            #expect(stored == [151, 100])
        }
    }

    @Test func `sessions that end by the hundred leave a hundred events`() async throws {
        try await TestApplication.with { app in
            try await app.administer(FindStoredAmounts.function)
            let ada = try await app.register()
            try await app.administer(
                """
                INSERT INTO saltern.sessions
                    (account_id, token_hash, session_id, created_at, last_used_at, expires_at)
                SELECT '\(ada.id)', sha256(n::text::bytea), gen_random_uuid(), '2026-01-01', '2026-01-01', '2026-02-01'
                FROM generate_series(1, 150) n
                """)
            #expect(try await ada.client.delete("/v1/sessions").integer("ended") == 150)
            let id = try #require(AccountID(pathParameter: ada.id))
            let amounts = try await app.execute(FindStoredAmounts(accountID: id))
            #expect(amounts.first { $0.name == "security_events" }?.amount.rows == 100)
        }
    }

    /// An item with so many bytes of plaintext, and 28 more that are sealed.
    static func item(_ plaintext: Int) -> JSONValue {
        ["format": "aes-256-gcm", "body": .string(Fixtures.sealed(plaintext: plaintext))]
    }
}
