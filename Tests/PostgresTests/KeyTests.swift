import EventLoop
import SalternTesting
import Testing

@testable import Postgres

/// Requests that lock: whoever waits for one thing holds up nobody who wants another.
@Suite(.timeLimit(.minutes(60))) struct KeyTests {
    struct Rewrite: Statement {
        static let sql: SQL<Self> =
            "UPDATE public.notes SET body = body || '+' WHERE id = \(\.id) RETURNING id, pg_backend_pid()"
        let id: Int32
        static func decode(_ row: inout RowReader) throws(PostgresError) -> Int32 {
            let id: Int32 = try row.next()
            row.skip()
            return id
        }
    }

    private static let schema =
        AddNote.schema + "; INSERT INTO public.notes SELECT number, '' FROM generate_series(1, 9) AS number"

    private static func key(_ id: Int32) -> RequestKey { RequestKey(.account, UUID(high: 0, low: UInt64(id))) }

    private static func leases(_ client: PostgresClient) -> Int {
        client.pool.slots.count { if case .leased = $0.phase { true } else { false } }
    }

    private static func few(_ configuration: inout PostgresConfiguration) {
        configuration.readConnections = 1
        configuration.commitConnections = 1
        configuration.leasedConnections = 3
    }

    /// Runs `body` while note 1 is locked.
    private static func whileLocked(
        _ client: PostgresClient, _ body: () async throws -> Void
    ) async throws {
        try await client.withTransaction { holder in
            _ = try await holder.execute(Rewrite(id: 1))
            try await body()
        }
    }

    private static func rewriteFirst(_ client: PostgresClient, _ count: Int) -> [Task<[Int32], any Error>] {
        (0..<count).map { _ in
            Task(executorPreference: client.loop) { try await client.execute(Rewrite(id: 1), key: key(1)) }
        }
    }

    @Test func `whoever meets a lock waits alone, and all others of its key behind it`() async throws {
        let (neighbours, results, counts) = try await withDatabase(Self.schema, Self.few) { client in
            var writers: [Task<[Int32], any Error>] = []
            var neighbours = 0
            try await Self.whileLocked(client) {
                writers = Self.rewriteFirst(client, 40)
                try await eventually { client.keys.counts.waiting == 39 }
                // None of these returns while the lock is held, if any of them waits for it.
                for round in 0..<30 {
                    neighbours += try await client.execute(Rewrite(id: 2), key: Self.key(2)).count
                    neighbours += try await client.execute(Echo(value: true)).count
                    neighbours += try await client.withTransaction(key: Self.key(3)) {
                        try await $0.execute(Rewrite(id: 3)).count
                    }
                    if round == 15 { #expect(client.keys.counts == (held: 1, waiting: 39)) }
                }
            }
            var results: [Int32] = []
            for writer in writers { results += try await writer.value }
            return (neighbours, results, client.keys.counts)
        }
        #expect(neighbours == 90)
        #expect(results == Array(repeating: 1, count: 40))
        #expect(counts == (0, 0))
    }

    @Test func `transactions of one key take one lease`() async throws {
        let neighbours = try await withDatabase(Self.schema, Self.few) { client in
            var tasks: [Task<Void, any Error>] = []
            var neighbours = 0
            try await Self.whileLocked(client) {
                for _ in 0..<20 {
                    tasks.append(
                        Task(executorPreference: client.loop) {
                            try await client.withTransaction(key: Self.key(1)) {
                                _ = try await $0.execute(Rewrite(id: 1))
                            }
                        })
                }
                try await eventually { client.keys.counts.waiting == 19 }
                for _ in 0..<10 {
                    neighbours += try await client.withTransaction(key: Self.key(2)) {
                        try await $0.execute(Rewrite(id: 2)).count
                    }
                }
            }
            for task in tasks { try await task.value }
            return neighbours
        }
        #expect(neighbours == 10)
    }

    @Test func `a request without a key that meets a lock waits alone too`() async throws {
        let (neighbours, results) = try await withDatabase(Self.schema, Self.few) { client in
            var neighbours = 0
            var writers: [Task<[Int32], any Error>] = []
            try await Self.whileLocked(client) {
                writers = (0..<10).map { _ in
                    Task(executorPreference: client.loop) { try await client.execute(Rewrite(id: 1), Rewrite(id: 4)).1 }
                }
                try await eventually { client.keys.counts.waiting == 9 }
                for _ in 0..<10 {
                    neighbours += try await client.execute(AddNote(id: 100 + Int32(neighbours)), Echo(value: true)).1
                        .count
                }
            }
            var results: [Int32] = []
            for writer in writers { results += try await writer.value }
            return (neighbours, results)
        }
        #expect(neighbours == 10)
        #expect(results == Array(repeating: 4, count: 10))
    }

    @Test func `a request that was moved fails with its own error, and its lease serves the next`() async throws {
        let (state, counts, ids) = try await withDatabase(Self.schema) {
            Self.few(&$0)
            $0.leasedConnections = 2
        } _: { client in
            var writer: Task<SQLState?, Never>?
            try await Self.whileLocked(client) {
                writer = Task(executorPreference: client.loop) {
                    do throws(PostgresError) {
                        _ = try await client.execute(Rewrite(id: 1), AddNote(id: 2), key: Self.key(1))
                        return nil
                    } catch { return error.sqlState }
                }
                try await eventually { try await client.execute(WaitingBackends()) == [1] }
            }
            let state = await writer?.value
            try await eventually { client.keys.counts == (0, 0) }
            let ids = try await client.withTransaction(key: Self.key(1)) { try await $0.execute(Rewrite(id: 1)) }
            return (state, client.keys.counts, ids)
        }
        #expect(state == .uniqueViolation)
        #expect(counts == (0, 0))
        #expect(ids == [1])
    }

    @Test(arguments: [false, true])
    func `a task that goes leaves its key to its request until the server has answered`(inTransaction: Bool)
        async throws
    {
        let (heldAfter, row) = try await withDatabase(Self.schema, Self.few) { client in
            var heldAfter: (held: Int, waiting: Int) = (0, 0)
            try await Self.whileLocked(client) {
                let task = Task(executorPreference: client.loop) {
                    if inTransaction {
                        try await client.withTransaction(key: Self.key(1)) { _ = try await $0.execute(Rewrite(id: 1)) }
                    } else {
                        _ = try await client.execute(Rewrite(id: 1), key: Self.key(1))
                    }
                }
                // On a lease of its own by now, beside the one that holds the lock.
                try await eventually {
                    try await client.execute(WaitingBackends()) == [1] && Self.leases(client) == 2
                }
                task.cancel()
                await #expect(throws: PostgresError.self) { try await task.value }
                heldAfter = client.keys.counts
                // It still waits, and its connection counts.
                try await eventually { try await client.execute(WaitingBackends()) == [1] }
            }
            try await eventually { client.keys.counts == (0, 0) }
            return (heldAfter, try await client.execute(Rewrite(id: 1), key: Self.key(1)))
        }
        #expect(heldAfter == (1, 0))
        #expect(row == [1])
    }

    @Test func `sixty-four wait for a key, and the next is told to come back`() async throws {
        let outcomes = try await withDatabase(Self.schema, Self.few) { client in
            var writers: [Task<[Int32], any Error>] = []
            var isRefused = false
            try await Self.whileLocked(client) {
                writers = Self.rewriteFirst(client, 65)
                try await eventually { client.keys.counts.waiting == 64 }
                do throws(PostgresError) {
                    _ = try await client.execute(Rewrite(id: 1), key: Self.key(1))
                } catch {
                    if case .queueFull = error { isRefused = true }
                }
            }
            var rows = 0
            for writer in writers { rows += try await writer.value.count }
            return (rows, isRefused)
        }
        #expect(outcomes == (65, true))
    }

    @Test func `who waits for a key waits no longer than for a connection, and can go`() async throws {
        let (isRefused, isCancelled, counts) = try await withDatabase(Self.schema) {
            Self.few(&$0)
            $0.acquireTimeout = .seconds(10)
        } _: { client in
            var isRefused = false
            var isCancelled = false
            try await client.withTransaction(key: Self.key(5)) { _ in
                do throws(PostgresError) {
                    _ = try await client.execute(Rewrite(id: 5), key: Self.key(5))
                } catch {
                    if case .unavailable = error { isRefused = true }
                }
                let task = Task(executorPreference: client.loop) {
                    _ = try await client.execute(Rewrite(id: 5), key: Self.key(5))
                }
                try await eventually { client.keys.counts.waiting == 1 }
                task.cancel()
                do { try await task.value } catch PostgresError.cancelled { isCancelled = true }
            }
            return (isRefused, isCancelled, client.keys.counts)
        }
        #expect(isRefused && isCancelled)
        #expect(counts == (0, 0))
    }

    @Test func `two loops share one table`() async throws {
        let keys = RequestKeys()
        let most = try await TemporaryDatabase.with(
            migrations: [Migration(version: 1, name: "test", sql: Self.schema)]
        ) { database in
            try await withClient({ Self.few(&$0) }, url: database.administratorURL, keys: keys) { first in
                try await withClient({ Self.few(&$0) }, url: database.administratorURL, keys: keys) { second in
                    let tasks = [first, second].map { client in
                        Task(executorPreference: client.loop) {
                            var most = 0
                            for _ in 0..<200 {
                                let rows = try await client.execute(Rewrite(id: 1), key: Self.key(1))
                                most = max(most, rows.count, keys.counts.held)
                            }
                            return most
                        }
                    }
                    var most = 0
                    for task in tasks { most = max(most, try await task.value) }
                    return most
                }
            }
        }
        #expect(most == 1)
        #expect(keys.counts == (0, 0))
    }

    @Test func `a party has one long lease at a time, and long ones leave room`() async throws {
        let (order, waiting) = try await withDatabase(Self.schema) {
            Self.few(&$0)
            $0.leasedConnections = 2
        } _: { client in
            let batchOwner = RequestKey(.address, hashing: [192, 0, 2, 1])
            let other = RequestKey(.address, hashing: [192, 0, 2, 2])
            var order: [String] = []
            var waiting = 0
            var tasks: [Task<Void, any Error>] = []
            try await client.withTransaction(use: .long(by: batchOwner)) { long in
                _ = try await long.execute(Rewrite(id: 1))
                tasks = [batchOwner, other].map { batchOwner in
                    Task(executorPreference: client.loop) {
                        try await client.withTransaction(use: .long(by: batchOwner)) {
                            _ = try await $0.execute(Rewrite(id: 2))
                        }
                    }
                }
                try await eventually { client.keys.counts == (held: 2, waiting: 1) }
                for _ in 0..<5 {
                    _ = try await client.withTransaction { try await $0.execute(Rewrite(id: 3)) }
                    order.append("short")
                }
                waiting = client.pool.waiterCount
                order.append("long")
            }
            for task in tasks { try await task.value }
            return (order, waiting)
        }
        #expect(order == ["short", "short", "short", "short", "short", "long"])
        #expect(waiting == 1, "the other's long one waits for the first to end")
    }

    @Test func `nothing is left after thousands of leases, granted, refused and given up`() async throws {
        let (waiters, counts) = try await withDatabase(Self.schema) {
            Self.few(&$0)
            $0.queueLimit = 8
            $0.backOff = .milliseconds(1)...(.milliseconds(5))
        } _: { client in
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<24 as Range<UInt64> {
                    group.addTask(executorPreference: client.loop) {
                        var random = SeededGenerator(seed: worker)
                        for _ in 0..<60 {
                            let id = Int32.random(in: 1...9, using: &random)
                            let isLong = random.chance(0.3)
                            let task = Task(executorPreference: client.loop) {
                                let use =
                                    isLong ? LeaseUse.long(by: RequestKey(.address, hashing: [UInt8(id)])) : .short
                                try await client.withTransaction(key: Self.key(id), use: use) {
                                    _ = try await $0.execute(Rewrite(id: id))
                                }
                            }
                            if random.chance(0.4) {
                                await Task.yield()
                                task.cancel()
                            }
                            _ = await task.result
                        }
                    }
                }
            }
            try await eventually { client.keys.counts == (0, 0) }
            return (client.pool.waiterCount, client.keys.counts)
        }
        #expect(waiters == 0)
        #expect(counts == (0, 0))
    }
}

struct WaitingBackends: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
        """
}
