import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ItemRaceTests {
    @Test func `of many who replace the same revision one wins`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await ada.client.put(path, ItemTests.item(), ["If-Match": "\"1\""]).status }
                }
                return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
            }
            #expect(statuses == [200: 1, 412: 19])
            #expect(try await ada.client.get(path).integer("revision") == 2)
        }
    }

    @Test func `counters and revisions are exact under a mix of changes`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            let paths = (0..<4).map { _ in "/v1/items/\(Fixtures.uuid())" }
            let changes = try await withThrowingTaskGroup(of: Bool.self) { group in
                for index in 0..<160 {
                    let path = paths[index % 4]
                    group.addTask {
                        switch index % 5 {
                        case 0: return try await ada.client.delete(path, ["If-Match": "*"]).status == 200
                        case 1: return try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200
                        default:
                            let item = ItemTests.item(plaintext: index)
                            return try await ada.client.put(path, item, ["If-None-Match": "*"]).status == 201
                        }
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            let counted = try #require(try await app.execute(CountedAndActual()).first)
            #expect(counted.revision == Int64(changes))
            #expect(counted.revision == counted.highestRevision)
            #expect(counted.itemCount == counted.actualCount)
            #expect(counted.itemBytes == counted.actualBytes)
        }
    }

    @Test func `a quota holds when many items are created at once`() async throws {
        try await TestApplication.with(connections: 4) { app in
            try await app.administer("UPDATE saltern.plans SET max_items = 5")
            let ada = try await app.register()
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<30 {
                    group.addTask {
                        try await ada.client.put(
                            "/v1/items/\(Fixtures.uuid())", ItemTests.item(), ["If-None-Match": "*"]
                        ).status
                    }
                }
                return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
            }
            #expect(statuses == [201: 5, 403: 25])
        }
    }

    @Test func `counters are exact while plans, the base of revisions and other sessions' items change`() async throws {
        try await TestApplication.with(connections: 4) { app in
            try await app.administer("UPDATE saltern.plans SET max_items = 4, max_bytes = 700, max_item_bytes = 220")
            let ada = try await app.register()
            let paths = (0..<6).map { _ in "/v1/items/\(Fixtures.uuid())" }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for step in 1...12 {
                        try await app.administer(
                            """
                            UPDATE saltern.plans SET max_items = \(2 + step % 4), deleted_days = \(step % 3),
                                max_bytes = \(300 + 100 * (step % 5));
                            UPDATE saltern.installation SET revision_base = \(1_000 * step);
                            """)
                    }
                }
                for index in 0..<200 {
                    let path = paths[index % 6]
                    group.addTask {
                        let item = ItemTests.item(plaintext: index)
                        let reply =
                            switch index % 7 {
                            case 0, 1: try await ada.client.delete(path, ["If-Match": "*"])
                            case 2, 3: try await ada.client.put(path, item, ["If-Match": "*"])
                            default: try await ada.client.put(path, item, ["If-None-Match": "*"])
                            }
                        #expect([200, 201, 403, 404, 412, 429, 503].contains(reply.status), "\(reply)")
                    }
                }
                try await group.waitForAll()
            }
            try await app.administer("UPDATE saltern.plans SET max_items = 1")
            #expect(try await ada.client.put(paths[0], ItemTests.item(plaintext: 0), ["If-Match": "*"]).status != 201)
            let account = try #require(AccountID(pathParameter: ada.id))
            let counters = try #require(try await app.execute(CompareCounters(accountID: account)).first)
            #expect(counters.counted == counters.actual)
            let counted = try #require(try await app.execute(CountedAndActual()).first)
            #expect(counted.revision == counted.highestRevision)
        }
    }

    @Test func `when the end of a session is told, none of its writes comes after`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            let other = try await app.logIn(ada)
            let (statuses, told) = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<40 {
                    group.addTask { try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status }
                }
                // Some of them are over by then.
                var statuses = [try #require(try await group.next())]
                #expect(try await other.delete("/v1/sessions/\(ada.sessionID)").status == 204)
                let told = try await other.get(path).integer("revision")
                for try await status in group { statuses.append(status) }
                return (statuses, told)
            }
            #expect(Set(statuses).isSubset(of: [200, 401]))
            #expect(try await other.get(path).integer("revision") == told)
            #expect(told == 1 + statuses.filter { $0 == 200 }.count)
        }
    }

    /// What an account says of itself, and what is there.
    private struct CountedAndActual: Statement {
        struct Row: Sendable {
            let revision, highestRevision, itemCount, actualCount, itemBytes, actualBytes: Int64
        }

        static let isReadOnly = true
        static let sql: SQL<Self> = """
            SELECT a.revision, (SELECT max(i.revision) FROM saltern.items i),
                a.item_count, (SELECT count(*) FROM saltern.items i WHERE NOT i.deleted),
                a.item_bytes,
                (SELECT coalesce(sum(octet_length(i.body)), 0)::bigint FROM saltern.items i WHERE NOT i.deleted)
            FROM saltern.accounts a
            """

        static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
    }
}
