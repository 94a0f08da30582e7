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

    @Test func `a fingerprint with a gap tells no failovers`() {
        #expect(Self.here.tellsFailovers)
        #expect(!DatabaseFingerprint("-/0000000A/16384/16400").tellsFailovers)
        #expect(!DatabaseFingerprint("7311/-/16384/16400").tellsFailovers)
    }

    /// Pretends that somebody last looked on the timeline before.
    private static func goToAnotherTimeline(_ app: TestApplication) async throws {
        try await app.administer(
            "UPDATE saltern.installation SET fingerprint = overlay(fingerprint PLACING '00000000' "
                + "FROM position('/' IN fingerprint) + 1)")
    }

    private static func look(
        _ app: TestApplication, _ failover: FailoverKind
    ) async throws -> (base: Int64, log: String) {
        let sink = CapturedLog()
        let watch = DatabaseWatch(clock: nil, failover: failover, log: .captured(by: sink))
        // Not the application's own client, which would look by itself on each connection.
        try await SeparateClient.with(app.database.serverURL) { try await $0.run { try await watch.look($0) } }
        return (try #require(try await app.execute(ReadRevisionBase()).first), sink.lines.joined())
    }

    @Test func `a new timeline moves the base, but only the fingerprint where failovers lose nothing`() async throws {
        try await TestApplication.with { app in
            #expect(try await Self.look(app, .synchronous) == (0, ""))
            try await Self.goToAnotherTimeline(app)
            let synchronous = try await Self.look(app, .synchronous)
            #expect(synchronous.base == 0)
            #expect(synchronous.log.contains("failover_without_loss"))
            #expect(try await Self.look(app, .asynchronous) == (0, ""))

            try await Self.goToAnotherTimeline(app)
            let asynchronous = try await Self.look(app, .asynchronous)
            #expect(asynchronous.base > 1 << 50)
            #expect(asynchronous.log.contains("time_went_back"))
            #expect(try await Self.look(app, .asynchronous) == (asynchronous.base, ""))
        }
    }

    @Test func `a restored database moves the base also where failovers lose nothing`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.installation SET fingerprint = '1/00000001/2/3'")
            #expect(try await Self.look(app, .synchronous).base > 1 << 50)
        }
    }

    @Test func `of many connections that find it at once, one moves the base`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.installation SET fingerprint = '1/00000001/2/3'")
            let sink = CapturedLog()
            let watch = DatabaseWatch(
                clock: nil, failover: .asynchronous, log: .captured(by: sink))
            try await SeparateClient.with(app.database.serverURL, transactions: 8) { client in
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
        try await TestApplication.with { app in
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
                            AuthenticateForWrite(caller: caller, touchInterval: .seconds(60)),
                            Guarded(caller: caller, write: creation),
                            StoreNewItem(creation: creation, accountID: caller.accountID, now: caller.now))
                        let moving = Task {
                            try await administration.run {
                                try await RestoredDatabase(database: $0).moveBase(by: signature)
                            }
                        }
                        try await TimeThatWentBackTests.eventually {
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
