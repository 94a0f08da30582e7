import HTTPCore
import Postgres
import SalternTesting
import Testing

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

    /// What an account says of itself, and what is there.
    private struct CountedAndActual: Statement {
        struct Row: Sendable {
            let revision, highestRevision, itemCount, actualCount, itemBytes, actualBytes: Int64
        }

        static let isReadOnly = true
        static let sql = """
            SELECT a.revision, (SELECT max(i.revision) FROM saltern.items i),
                a.item_count, (SELECT count(*) FROM saltern.items i WHERE NOT i.deleted),
                a.item_bytes,
                (SELECT coalesce(sum(octet_length(i.body)), 0)::bigint FROM saltern.items i WHERE NOT i.deleted)
            FROM saltern.accounts a
            """

        static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
            Row(
                revision: try row.next(), highestRevision: try row.next(), itemCount: try row.next(),
                actualCount: try row.next(), itemBytes: try row.next(), actualBytes: try row.next())
        }
    }
}
