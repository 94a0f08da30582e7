import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

/// Many writers, whose transactions stay open for a random time after the statement, and devices that follow.
@Suite struct SyncPropertyTests {
    private static let writers = 8
    private static let transactionsPerWriter = PropertyTests.repetitions(150)

    @Test func `a device that follows the cursor ends with what the database has, and counters are exact`() async throws
    {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            let caller = try app.caller(of: ada.client)
            let ids = (0..<40).map { _ in ItemID.random() }
            let running = Running(Self.writers)
            try await SeparateClient.with(app.database.serverURL, transactions: Self.writers) { client in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<Self.writers {
                        group.addTask {
                            defer { running.end() }
                            for _ in 0..<Self.transactionsPerWriter {
                                try await client.run { try await Self.write($0, caller, ids) }
                            }
                        }
                    }
                    for device in 0..<3 {
                        group.addTask {
                            var follower = ChangeFollower(device == 0 ? .withNothing : .again)
                            var isOver = false
                            while !isOver {
                                let isWritten = running.isOver
                                let isUpToDate = try await follower.follow(ada.client, limit: .random(in: 1...9))
                                isOver = isWritten && isUpToDate
                            }
                            let stored = try await app.execute(StoredItems())
                            #expect(stored.count > 20)
                            #expect(follower.differences(from: stored) == [], "device \(device)")
                            #expect(follower.disorders == [], "device \(device)")
                            #expect(follower.lastRevision > Self.writers * Self.transactionsPerWriter / 2)
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let counted = try #require(try await app.execute(CountedAndStored()).first)
            #expect(counted.items == counted.storedItems)
            #expect(counted.bytes == counted.storedBytes)
            #expect(counted.revision == counted.highestRevision)
        }
    }

    @Test func `the same device misses changes when revisions come from a global sequence`() async throws {
        try await TestApplication.with { app in
            try await app.administer(GlobalSequence.schema)
            let follower = try await app.run { [postgres = app.postgres] in
                var follower = ChangeFollower()
                try await postgres.withTransaction { slow in
                    _ = try await slow.execute(GlobalSequence.Write(id: "slow"))
                    try await postgres.withTransaction { _ = try await $0.execute(GlobalSequence.Write(id: "fast")) }
                    follower.take(try await postgres.execute(GlobalSequence.Read(after: follower.lastRevision)))
                }
                follower.take(try await postgres.execute(GlobalSequence.Read(after: follower.lastRevision)))
                return follower
            }
            let stored = try await app.execute(GlobalSequence.Read(after: 0))
            #expect(follower.differences(from: stored) == ["slow: device 0, database 1"])
        }
    }

    /// One transaction with a random change, or a few, and random pauses; one of twenty is rolled back.
    private static func write(_ postgres: PostgresClient, _ caller: Caller, _ ids: [ItemID]) async throws {
        struct RolledBack: Error {}
        let lock = AuthenticateForWrite(caller: caller)
        let (account, now) = (caller.accountID, caller.now)
        let id = ids.randomElement() ?? ids[0]
        do {
            try await postgres.withTransaction { transaction in
                _ = try await transaction.execute(Pause(seconds: .random(in: 0...0.001)))
                switch Int.random(in: 0..<10) {
                case 0...4:
                    let write = try WriteItem(
                        id: id, precondition: Bool.random() ? .absent : .present, collection: .standard,
                        format: .opaque, iterations: nil, title: nil, body: Self.body())
                    let (_, changes) = try await transaction.execute(lock, Guarded(caller: caller, write: write))
                    if changes.first?.outcome == .vacant {
                        let creation = CreateItem(write: write)
                        _ = try await transaction.execute(
                            Guarded(caller: caller, write: creation),
                            StoreNewItem(creation: creation, owner: OwnerID(account), now: now))
                    }
                case 5, 6:
                    let write = DecideDeletion(id: id, precondition: .present)
                    _ = try await transaction.execute(
                        lock, Guarded(caller: caller, write: write),
                        ArchiveContent(decision: write, owner: OwnerID(account), now: now),
                        WriteTombstone(decision: write, owner: OwnerID(account), now: now))
                case 7:
                    let write = RestoreItemRow(id: id, precondition: .present)
                    _ = try await transaction.execute(
                        lock, Guarded(caller: caller, write: write),
                        StoreRestored(restoration: write, owner: OwnerID(account), now: now))
                default:
                    let operations = try Set((0..<5).map { _ in ids.randomElement() ?? ids[0] }).map { id in
                        BatchOperation(
                            id: id, ifRevision: nil,
                            content: Int.random(in: 0..<4) == 0
                                ? nil
                                : ItemContent(
                                    format: .opaque, collection: .standard, iterations: nil, title: nil,
                                    body: try Self.body()))
                    }
                    let write = ApplyBatch(operations: operations)
                    let (_, rows) = try await transaction.execute(lock, Guarded(caller: caller, write: write))
                    try await ItemTransaction(transaction, of: caller.accountID).store(write, rows, now: now)
                }
                _ = try await transaction.execute(Pause(seconds: .random(in: 0...0.003)))
                if Int.random(in: 0..<20) == 0 { throw RolledBack() }
            }
        } catch is RolledBack {}
    }

    /// 30 to 44 random bytes that are no text.
    private static func body() throws -> SealedBytes {
        try SealedBytes([0xFF, 0xFE, 0xFF] + SecureRandom.bytes(.random(in: 27...41)), format: .opaque)
    }
}

/// How many writers have not finished.
private final class Running: Sendable {
    private let count: Mutex<Int>

    init(_ count: Int) { self.count = Mutex(count) }

    var isOver: Bool { count.withLock { $0 == 0 } }

    func end() { count.withLock { $0 -= 1 } }
}

/// Waits on the server.
private struct Pause: Statement {
    typealias Row = Void

    let seconds: Double

    static let sql: SQL<Self> = "SELECT FROM pg_sleep(\(\.seconds))"
}

/// Every row of every account's items.
private struct StoredItems: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT item_id::text, revision, encode(body, 'base64') FROM saltern.items"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ChangeFollower.Change {
        try row.read(ChangeFollower.Change.init)
    }
}

/// What the account says of itself, and what is there.
struct CountedAndStored: Statement {
    struct Row: Sendable {
        let revision, highestRevision, items, storedItems, bytes, storedBytes: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.revision, (SELECT max(i.revision) FROM saltern.items i),
            a.item_count, (SELECT count(*) FROM saltern.items i WHERE NOT i.deleted), a.item_bytes,
            (
                SELECT coalesce(sum(octet_length(i.body) + coalesce(octet_length(i.title), 0)), 0)::bigint
                FROM saltern.items i WHERE NOT i.deleted
            )
        FROM saltern.accounts a
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// What this server does not do: revisions from a sequence, which are taken in one order and committed in another.
private enum GlobalSequence {
    static let schema = """
        CREATE SCHEMA global_sequence;
        CREATE SEQUENCE global_sequence.revisions;
        CREATE TABLE global_sequence.items (item_id text PRIMARY KEY, revision bigint NOT NULL);
        GRANT USAGE ON SCHEMA global_sequence TO saltern_server;
        GRANT USAGE ON SEQUENCE global_sequence.revisions TO saltern_server;
        GRANT SELECT, INSERT, UPDATE ON global_sequence.items TO saltern_server
        """

    struct Write: Statement {
        typealias Row = Void
        let id: String

        static let sql: SQL<Self> =
            "INSERT INTO global_sequence.items VALUES (\(\.id), nextval('global_sequence.revisions'))"
    }

    struct Read: Statement {
        let after: Int64

        static let isReadOnly = true
        static let sql: SQL<Self> =
            "SELECT item_id, revision FROM global_sequence.items WHERE revision > \(\.after) ORDER BY revision"

        static func decode(_ row: inout RowReader) throws(PostgresError) -> ChangeFollower.Change {
            ChangeFollower.Change(id: try row.next(), revision: try row.next(), body: nil)
        }
    }
}

extension TestApplication {
    /// The caller that a client's token names.
    func caller(of client: TestClient) throws -> Caller {
        Caller(
            try PresentedToken(RequestFieldsFixture.bearer(client.token ?? "")), now: clock.now,
            policy: configuration.sessions)
    }
}
