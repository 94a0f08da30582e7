import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

@Suite struct DatabaseWatchTests {
    private static let here = DatabaseFingerprint("7311/0000000A/16384/16400")

    @Test(arguments: [
        ("7311/00000009/16384/16400", true), ("7311/0000000A/16384/16400", false), ("7311/0000000B/16384/16400", false),
        ("7312/00000009/16384/16400", false), ("7311/00000009/16385/16400", false),
        ("7311/00000009/16384/16401", false), ("7311/-/16384/16400", false), ("", false), ("7311/00000009", false),
    ])
    func `a later timeline is one of the same database`(other: String, isLater: Bool) {
        #expect(Self.here.isLaterTimeline(of: DatabaseFingerprint(other)) == isLater)
    }

    @Test func `a cluster that comes back on an earlier timeline is told from one that is new`() {
        var memory = TimelineMemory()
        func note(_ texts: String...) -> [TimelineMemory.Place] { texts.map { memory.note(DatabaseFingerprint($0)) } }
        #expect(note("7311/00000009/16384/16400", "7311/0000000A/16384/16400") == [.same, .later])
        #expect(note("7311/00000009/16384/16400", "7311/00000009/1/2") == [.earlier, .earlier])
        #expect(note("7311/0000000A/16384/16401", "7311/0000000B/16384/16400") == [.same, .later])
        #expect(note("7311/0000000A/16384/16400") == [.earlier])
        #expect(note("7312/00000001/16384/16400", "7312/00000001/16384/16400") == [.later, .same], "another cluster")
        #expect(note("-/00000001/16384/16400", "7311/-/16384/16400") == [.same, .same], "who may not know, goes on")
    }

    @Test func `a later timeline that one connection shows ends those of other loops, and the one before is not used`()
        async throws
    {
        try await TestApplication.with { app in
            let epoch = ConnectionEpoch()
            let watch = DatabaseWatch(
                clock: nil, failover: .asynchronous, epoch: epoch, log: .captured(by: CapturedLog()))
            let url = app.database.serverURL
            try await SeparateClient.with(url, watch: (watch, epoch)) { idle in
                let before = try await idle.run { try await $0.execute(FindOwnBackend()) }
                try await Self.showTimeline(app, 0xFFFF)
                try await SeparateClient.with(url, watch: (watch, epoch)) { other in
                    _ = try await other.run { try await $0.execute(FindOwnBackend()) }
                    #expect(epoch.current == 1, "once, by the connections of both")
                    let after = try await idle.run { try await $0.execute(FindOwnBackend()) }
                    #expect(after != before)
                    try await Self.showTimeline(app, 0xFFFE)
                    await #expect(throws: DatabaseIsSuperseded.self) {
                        try await other.run { try await watch.look($0) }
                    }
                    #expect(epoch.current == 2)
                    // Nothing is there that may be used, until the later one is there again.
                    await #expect(throws: PostgresError.self) {
                        try await Self.withinSeconds(1) {
                            try await idle.run { try await $0.execute(FindOwnBackend()) }
                        }
                    }
                    try await Self.showTimeline(app, 0xFFFF)
                    _ = try await idle.run { try await $0.execute(FindOwnBackend()) }
                }
            }
        }
    }

    /// Pretends that the server is on this timeline.
    private static func showTimeline(_ app: TestApplication, _ timeline: Int) async throws {
        try await app.administer(
            "CREATE OR REPLACE FUNCTION saltern.database_fingerprint() RETURNS text LANGUAGE sql "
                + "AS $$ SELECT format('7311/%s/1/2', lpad(upper(to_hex(\(timeline))), 8, '0')) $$")
    }

    private static func withinSeconds<Result: Sendable>(
        _ seconds: Int, _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try? await Task.sleep(for: .seconds(seconds))
                return nil
            }
            defer { group.cancelAll() }
            guard let result = try await group.next() ?? nil else { throw PostgresError.timedOut }
            return result
        }
    }

    @Test func `a running service does not use a database that is being restored, and goes on when it has come back`()
        async throws
    {
        try await TestApplication.with(acquireTimeout: .seconds(10)) { app in
            let ada = try await app.register()
            try await app.administer("CREATE SCHEMA saltern_restoring")
            await #expect(throws: UnfinishedRestore.self) { try await app.look() }
            for path in ["/v1/changes", "/v1/health/ready"] {
                let refused = try await ada.client.get(path)
                #expect(refused.status == 503 && refused.string("code") == "database_unavailable", "\(refused)")
            }
            try await app.administer("DROP SCHEMA saltern_restoring")
            try await eventually { try await ada.client.get("/v1/changes").status == 200 }
            // An answer about readiness holds for a second.
            app.clock.advance(by: .seconds(2))
            #expect(try await ada.client.get("/v1/health/ready").status == 200)
        }
    }

    @Test func `a running service whose schema has gone uses none of its connections when it is back`() async throws {
        try await TestApplication.with(acquireTimeout: .seconds(10)) { app in
            let ada = try await app.register()
            let before = try await app.execute(FindOwnBackend())
            try await app.administer("ALTER SCHEMA saltern RENAME TO saltern_before")
            await #expect(throws: PostgresError.self) { try await app.look() }
            try await app.administer("CREATE SCHEMA saltern_restoring; ALTER SCHEMA saltern_before RENAME TO saltern")
            for _ in 0..<3 { #expect(try await ada.client.get("/v1/changes").status == 503) }
            try await app.administer("DROP SCHEMA saltern_restoring")
            try await eventually { try await ada.client.get("/v1/changes").status == 200 }
            #expect(try await app.execute(FindOwnBackend()) != before)
        }
    }

    @Test func `a fingerprint with a gap tells no failovers`() {
        #expect(Self.here.detectsFailovers)
        #expect(!DatabaseFingerprint("-/0000000A/16384/16400").detectsFailovers)
        #expect(!DatabaseFingerprint("7311/-/16384/16400").detectsFailovers)
    }

    /// A database that a service has used. None does any more: its connections would look by themselves, also those that
    /// it opens beside the first.
    private static func withUsedDatabase(_ body: (TemporaryDatabase) async throws -> Void) async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            try await TestApplication.with(TestApplication.configuration, database, clock: ManualClock()) { _ in }
            try await body(database)
        }
    }

    /// Pretends that somebody last looked on the timeline before.
    private static func goToAnotherTimeline(_ database: TemporaryDatabase) async throws {
        try await database.administer(
            "UPDATE saltern.installation SET fingerprint = overlay(fingerprint PLACING '00000000' "
                + "FROM position('/' IN fingerprint) + 1)")
    }

    private static func look(
        _ database: TemporaryDatabase, _ failover: FailoverKind
    ) async throws -> (base: Int64, log: String) {
        let sink = CapturedLog()
        let watch = DatabaseWatch(clock: nil, failover: failover, log: .captured(by: sink))
        let base = try await SeparateClient.with(database.serverURL) { client in
            try await client.run { postgres in
                try await watch.look(postgres)
                return try await postgres.withConnection { try await $0.execute(ReadRevisionBase()) }.first
            }
        }
        return (try #require(base), sink.lines.joined())
    }

    @Test func `a new timeline moves the base, but only the fingerprint where failovers lose nothing`() async throws {
        try await Self.withUsedDatabase { database in
            #expect(try await Self.look(database, .synchronous) == (0, ""))
            try await Self.goToAnotherTimeline(database)
            let synchronous = try await Self.look(database, .synchronous)
            #expect(synchronous.base == 0)
            #expect(synchronous.log.contains("failover_without_loss"))
            #expect(try await Self.look(database, .asynchronous) == (0, ""))

            try await Self.goToAnotherTimeline(database)
            let asynchronous = try await Self.look(database, .asynchronous)
            #expect(asynchronous.base > 1 << 50)
            #expect(asynchronous.log.contains("time_went_back"))
            #expect(try await Self.look(database, .asynchronous) == (asynchronous.base, ""))
        }
    }

    @Test func `a restored database moves the base also where failovers lose nothing`() async throws {
        try await Self.withUsedDatabase { database in
            try await database.administer("UPDATE saltern.installation SET fingerprint = '1/00000001/2/3'")
            #expect(try await Self.look(database, .synchronous).base > 1 << 50)
        }
    }

    @Test func `of many connections that find it at once, one moves the base`() async throws {
        try await Self.withUsedDatabase { database in
            try await database.administer("UPDATE saltern.installation SET fingerprint = '1/00000001/2/3'")
            let sink = CapturedLog()
            let watch = DatabaseWatch(
                clock: nil, failover: .asynchronous, log: .captured(by: sink))
            try await SeparateClient.with(database.serverURL, transactions: 8) { client in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<8 {
                        group.addTask {
                            try await client.run { try await $0.withConnection { try await watch.welcome($0) } }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            #expect(sink.lines.count == 1)
        }
    }

    @Test func `a change that is under way is over before the base moves, and a later one is above it`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            let caller = try app.caller(of: ada.client)
            let signature = AuditSignature(actor: .account, now: app.clock.now)
            let owner = app.database.ownerURL
            let base = try await SeparateClient.with(owner) { administration in
                try await app.run { [postgres = app.postgres] in
                    let moving = try await postgres.withTransaction { transaction in
                        let body = try SealedBytes([UInt8](repeating: 0xFF, count: 3), format: .opaque)
                        let creation = CreateItem(
                            write: WriteItem(
                                id: .random(), precondition: .absent, collection: .standard, format: .opaque,
                                iterations: nil, title: nil, body: body))
                        _ = try await transaction.execute(
                            Guarded(caller: caller, write: creation),
                            StoreNewItem(creation: creation, owner: OwnerID(caller.accountID), now: caller.now))
                        let moving = Task {
                            try await administration.run {
                                try await RestoredDatabase(database: $0).moveBase(by: signature)
                            }
                        }
                        try await eventually {
                            try await postgres.execute(CountWaitingForAccounts()) == [1]
                        }
                        #expect(try await postgres.execute(ReadRevisionBase()) == [0])
                        return moving
                    }
                    return try await moving.value
                }
            }
            let before = try await ada.client.get("/v1/changes")
            #expect(before.integer("changes.0.revision") == 1)
            _ = try await ada.createItem()
            let after = try await ada.client.get("/v1/changes?since=\(try #require(before.string("cursor")))")
            #expect(after.integer("changes.0.revision") == Int(base) + 1)
        }
    }

    @Test func `a database whose restore is not finished is not used until it is`() async throws {
        try await TestApplication.with { app in
            let watch = DatabaseWatch(clock: nil, failover: .asynchronous, log: .captured(by: CapturedLog()))
            try await SeparateClient.with(app.database.serverURL) { client in
                try await app.administer("CREATE SCHEMA saltern_restoring")
                await #expect(throws: UnfinishedRestore.self) {
                    try await client.run { try await $0.withConnection { try await watch.welcome($0) } }
                }
                await #expect(throws: UnfinishedRestore.self) { try await client.run { try await watch.look($0) } }
                try await app.administer("DROP SCHEMA saltern_restoring")
                try await client.run { try await $0.withConnection { try await watch.welcome($0) } }
            }
        }
    }

    @Test func `where a restore has brought nothing back yet, that is what is said`() async throws {
        try await TestApplication.with { app in
            let watch = DatabaseWatch(clock: nil, failover: .asynchronous, log: .captured(by: CapturedLog()))
            try await SeparateClient.with(app.database.serverURL) { client in
                try await app.administer(
                    "CREATE SCHEMA saltern_restoring; ALTER SCHEMA saltern RENAME TO saltern_before")
                await #expect(throws: UnfinishedRestore.self) {
                    try await client.run { try await $0.withConnection { try await watch.welcome($0) } }
                }
                await #expect(throws: UnfinishedRestore.self) { try await client.run { try await watch.look($0) } }
                try await app.administer("DROP SCHEMA saltern_restoring")
                await #expect(throws: PostgresError.self) { try await client.run { try await watch.look($0) } }
                try await app.administer("ALTER SCHEMA saltern_before RENAME TO saltern")
            }
        }
    }

    @Test func `a new connection that is not welcome says nothing of others; one in use does`() async throws {
        try await TestApplication.with { app in
            let epoch = ConnectionEpoch()
            let watch = DatabaseWatch(
                clock: nil, failover: .asynchronous, epoch: epoch, log: .captured(by: CapturedLog()))
            try await app.administer("CREATE SCHEMA saltern_restoring")
            try await SeparateClient.with(app.database.serverURL) { client in
                await #expect(throws: UnfinishedRestore.self) {
                    try await client.run { try await $0.withConnection { try await watch.welcome($0) } }
                }
                #expect(epoch.current == 0)
                await #expect(throws: UnfinishedRestore.self) { try await client.run { try await watch.look($0) } }
                #expect(epoch.current == 1)
            }
        }
    }

    @Test func `a database without this schema, or whose installation has gone, is not used`() async throws {
        let watch = DatabaseWatch(clock: nil, failover: .asynchronous, log: .captured(by: CapturedLog()))
        try await TemporaryDatabase.with(migrations: Array(Schema.migrations.prefix(4))) { database in
            try await SeparateClient.with(database.serverURL) { client in
                let error = await #expect(throws: PostgresError.self) {
                    try await client.run { try await $0.withConnection { try await watch.welcome($0) } }
                }
                #expect(error?.sqlState == .undefinedFunction)
            }
        }
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            try await SeparateClient.with(database.serverURL) { client in
                try await client.run { try await $0.withConnection { try await watch.welcome($0) } }
            }
            try await TestApplication.with(TestApplication.configuration, database, clock: ManualClock()) { app in
                try await SeparateClient.with(database.serverURL) { client in
                    try await client.run { try await $0.withConnection { try await watch.welcome($0) } }
                    try await app.administer("DELETE FROM saltern.installation")
                    await #expect(throws: InstallationError.missing) {
                        try await client.run { try await $0.withConnection { try await watch.welcome($0) } }
                    }
                }
            }
        }
    }
}

extension Log {
    /// Everything, at a time that stands still.
    static func captured(by sink: CapturedLog) -> Log {
        Log(minimumLevel: .debug, sink: sink) { UTCTimestamp(microsecondsSinceEpoch: 0) }
    }
}

private struct FindOwnBackend: Statement {
    typealias Row = Int32
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT pg_backend_pid()"
}

struct ReadRevisionBase: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT revision_base FROM saltern.installation"
}

/// Sessions that wait for a lock of the accounts' table in this database.
private struct CountWaitingForAccounts: Statement {
    typealias Row = Int64
    static let sql: SQL<Self> = """
        SELECT count(*) FROM pg_locks l
        WHERE l.relation = 'saltern.accounts'::regclass AND NOT l.granted
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        """
}
