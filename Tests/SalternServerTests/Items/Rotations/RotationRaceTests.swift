import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

@Suite struct RotationRaceTests {
    @Test func `thousands of items are rotated while another device writes, and nothing is lost`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            var initial: [String: String] = [:]
            for _ in 0..<PropertyTests.repetitions(20) {
                let batch = (0..<500).map { _ in (id: Fixtures.uuid(), body: Fixtures.passwordKey(Fixtures.uuid())) }
                let reply = try await ada.client.post(
                    "/v1/items/batch",
                    ["operations": .array(batch.map { BatchTests.put($0.id, 0, RotationClient.item($0.body)) })])
                #expect(reply.status == 200, "\(reply)")
                for item in batch { initial[item.id] = item.body }
            }
            let writer = OtherDevice(client: try await app.logIn(ada), bodies: initial)

            async let writing: Void = writer.write(changes: PropertyTests.repetitions(400))
            var rotation = RotationClient(ada)
            try await rotation.open()
            try await rotation.stageAll()
            let committed = try await rotation.commitWithRetries()
            try await writing

            #expect(committed.status == 200, "\(committed)")
            let acknowledged = writer.acknowledged
            #expect(committed.integer("items") == acknowledged.count)
            let bodies = try await ada.client.bodies()
            #expect(bodies == acknowledged.mapValues(RotationClient.resealed))
            try await expectExactCounters(app)
            #expect(try await app.stored().stagedItems == 0)
        }
    }

    @Test(arguments: 0..<6)
    func `a commit and the writes of other devices happen one after the other`(_ round: Int) async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            var initial: [String: String] = [:]
            for _ in 0..<12 {
                let body = Fixtures.passwordKey(Fixtures.uuid())
                let path = try await ada.createItem(RotationClient.item(body))
                initial[String(path.dropFirst("/v1/items/".count))] = body
            }
            var opened = RotationClient(ada)
            try await opened.open()
            try await opened.stageAll()
            let rotation = opened
            let writer = OtherDevice(client: try await app.logIn(ada), bodies: initial)
            async let committed = rotation.commit()
            try await writer.write(changes: round)
            let reply = try await committed
            let bodies = try await ada.client.bodies()
            if reply.status == 200 {
                #expect(bodies == writer.acknowledged.mapValues(RotationClient.resealed))
                #expect(try await app.logsIn(ada, rotation.newKey))
            } else {
                #expect(reply.code == "rotation_incomplete")
                #expect(bodies == writer.acknowledged)
                #expect(try await app.logsIn(ada, ada.passwordKey))
            }
            try await expectExactCounters(app)
        }
    }

    @Test func `the same commit sent many times at once happens once, and every reply says so`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            for _ in 0..<5 { _ = try await ada.createItem() }
            var opened = RotationClient(ada)
            try await opened.open()
            try await opened.stageAll()
            let rotation = opened
            let replies = try await withThrowingTaskGroup(of: TestResponse.self) { group in
                for _ in 0..<10 { group.addTask { try await rotation.commit() } }
                return try await group.reduce(into: [TestResponse]()) { $0.append($1) }
            }
            for reply in replies {
                #expect(reply.status == 200, "\(reply)")
                #expect(reply.integer("items") == 5)
                #expect(reply.integer("revision") == 10)
            }
            #expect(try await app.stored().events == "rotation_committed")
            try await expectExactCounters(app)
        }
    }

    @Test func `of commits with different keys one wins, and its key opens the account`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            _ = try await ada.createItem()
            var opened = RotationClient(ada)
            try await opened.open()
            try await opened.stageAll()
            let rotation = opened
            let keys = (0..<8).map { Fixtures.passwordKey("new \($0)") }
            let winners = try await withThrowingTaskGroup(of: String?.self) { group in
                for key in keys {
                    group.addTask {
                        let reply = try await rotation.commit(newKey: key)
                        // The others do not know the key that is the present one by then.
                        #expect([200, 403, 429].contains(reply.status), "\(reply)")
                        return reply.status == 200 ? key : nil
                    }
                }
                return try await group.reduce(into: [String]()) { if let key = $1 { $0.append(key) } }
            }
            #expect(winners.count == 1)
            for key in keys {
                // Wrong keys, those of the commits among them, make the next one wait.
                app.clock.advance(by: .seconds(61))
                #expect(try await app.logsIn(ada, key) == winners.contains(key))
            }
        }
    }

    @Test(arguments: 0..<8)
    func `a commit and a change of the credential: one of them happens`(_ round: Int) async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            _ = try await ada.createItem()
            let before = try await ada.client.bodies()
            var opened = RotationClient(ada)
            try await opened.open()
            try await opened.stageAll()
            let rotation = opened
            let other = try await app.logIn(ada)
            let otherKey = Fixtures.passwordKey("another")
            async let committing = rotation.commit()
            async let changing = other.put(
                "/v1/account/credential",
                [
                    "currentPasswordKey": .string(ada.passwordKey), "passwordKey": .string(otherKey),
                    "kdf": ["iterations": 600_000],
                ])
            let (committed, changed) = try await (committing, changing)
            #expect((committed.status == 200) != (changed.status == 200), "\(committed) \(changed)")
            #expect(try await app.logsIn(ada, otherKey) == (changed.status == 200))
            #expect(try await app.logsIn(ada, rotation.newKey) == (committed.status == 200))
            #expect(try await !app.logsIn(ada, ada.passwordKey))
            let key = changed.status == 200 ? otherKey : rotation.newKey
            let login = try await app.client.post(
                "/v1/sessions", ["userid": .string(ada.userid), "passwordKey": .string(key)])
            let bodies = try await app.client.with(token: login.string("session.token")).bodies()
            #expect(bodies == (changed.status == 200 ? before : before.mapValues(RotationClient.resealed)))
        }
    }

    @Test func `rotations opened at once leave one, and nothing of the others`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            for _ in 0..<3 { _ = try await ada.createItem() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 {
                    group.addTask {
                        var rotation = RotationClient(ada)
                        try await rotation.open()
                        // Somebody may have opened another one meanwhile.
                        try? await rotation.stageAll()
                    }
                }
                try await group.waitForAll()
            }
            let stored = try await app.stored()
            #expect(stored.rotations == 1)
            #expect([0, 3].contains(stored.stagedItems))
        }
    }

    private func expectExactCounters(_ app: TestApplication) async throws {
        let counted = try #require(try await app.execute(CountedAndActual()).first)
        #expect(counted.revision == counted.highestRevision)
        #expect(counted.itemCount == counted.actualCount)
        #expect(counted.itemBytes == counted.actualBytes)
        #expect(counted.revisions == counted.rows)
    }
}

/// A device that changes, deletes and creates items until it has done enough or its session has ended.
private final class OtherDevice: Sendable {
    private let client: TestClient
    private let bodies: Mutex<[String: String]>

    init(client: TestClient, bodies: [String: String]) {
        self.client = client
        self.bodies = Mutex(bodies)
    }

    /// What every item is, by the replies so far.
    var acknowledged: [String: String] { bodies.withLock { $0 } }

    func write(changes: Int) async throws {
        let ids = acknowledged.keys.shuffled()
        for index in 0..<changes {
            let id = ids[index % ids.count]
            let body = Fixtures.passwordKey(Fixtures.uuid())
            switch index % 10 {
            case 8:
                let reply = try await client.delete("/v1/items/\(id)", ["If-Match": "*"])
                if reply.status == 401 { return }
                if reply.status == 200 { bodies.withLock { $0[id] = nil } }
            case 9:
                let new = Fixtures.uuid()
                let reply = try await client.put(
                    "/v1/items/\(new)", RotationClient.item(body), ["If-None-Match": "*"])
                if reply.status == 401 { return }
                if reply.status == 201 { bodies.withLock { $0[new] = body } }
            default:
                let reply = try await client.put("/v1/items/\(id)", RotationClient.item(body), ["If-Match": "*"])
                if reply.status == 401 { return }
                if reply.status == 200 { bodies.withLock { $0[id] = body } }
            }
        }
    }
}

/// What the one account says of itself, and what is there.
private struct CountedAndActual: Statement {
    struct Row: Sendable {
        let revision, highestRevision, itemCount, actualCount, itemBytes, actualBytes, revisions, rows: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.revision, (SELECT coalesce(max(i.revision), 0) FROM saltern.items i),
            a.item_count, (SELECT count(*) FROM saltern.items i WHERE NOT i.deleted),
            a.item_bytes,
            (SELECT coalesce(sum(octet_length(i.body)), 0)::bigint FROM saltern.items i WHERE NOT i.deleted),
            (SELECT count(DISTINCT i.revision) FROM saltern.items i), (SELECT count(*) FROM saltern.items i)
        FROM saltern.accounts a
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
