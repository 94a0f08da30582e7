import EventLoop
import SalternTesting
import Synchronization
import Testing

@testable import Postgres

/// What was found on one connection, and counts for all.
@Suite(.timeLimit(.minutes(60))) struct EpochTests {
    private static func configure(_ configuration: inout PostgresConfiguration) {
        configuration.backOff = .milliseconds(10)...(.milliseconds(100))
        configuration.takeoverPatience = .seconds(4_000)
        configuration.readConnections = 1
        configuration.commitConnections = 1
        configuration.leasedConnections = 1
    }

    private static let notesAndGate = Migration(
        version: 1, name: "test", sql: AddNote.schema + ";" + PassGate.schema)

    /// Opens the gate through a client that has an epoch of its own.
    private static func openGate(_ url: String) async throws {
        _ = try await withClient(url: url) { try await $0.execute(OpenGate()) }
    }

    @Test func `with a new epoch the connections of all clients are others, idle and busy ones`() async throws {
        let epoch = ConnectionEpoch()
        try await TemporaryDatabase.with(migrations: [Self.notesAndGate]) { database in
            let url = database.administratorURL
            try await withClient(Self.configure, url: url, epoch: epoch) { busy in
                try await withClient(Self.configure, url: url, epoch: epoch) { idle in
                    let before = try await idle.execute(Backends())
                    // A lease that is kept for the next transaction.
                    let lease = try await idle.withTransaction { try await $0.execute(BackendID()) }
                    let reading = Task(executorPreference: busy.loop) { try await busy.execute(PassGate()) }
                    try await eventually { await busy.loop.run { busy.statistics().lanes[.reads]?.inUse == 1 } }
                    epoch.begin()
                    try await eventually { await idle.loop.run { idle.statistics().lanes[.leases]?.open == 0 } }
                    #expect(try await idle.execute(Backends()) != before)
                    #expect(try await idle.withTransaction { try await $0.execute(BackendID()) } != lease)
                    try await Self.openGate(url)
                    _ = try await reading.value
                }
            }
        }
    }

    @Test func `what commits meanwhile is in doubt, and a transaction goes no further`() async throws {
        let epoch = ConnectionEpoch()
        try await TemporaryDatabase.with(migrations: [Self.notesAndGate]) { database in
            let url = database.administratorURL
            try await withClient(Self.configure, url: url, epoch: epoch) { client in
                let writing = Task(executorPreference: client.loop) {
                    try await client.execute(AddBehindGate(id: 1))
                }
                try await eventually { client.statistics().lanes[.commits]?.inUse == 1 }
                epoch.begin()
                try await Self.openGate(url)
                await #expect { try await writing.value } throws: { error in
                    if case .commitInDoubt? = error as? PostgresError { true } else { false }
                }
                await #expect {
                    try await client.withTransaction { transaction in
                        _ = try await transaction.execute(AddNote(id: 2))
                        epoch.begin()
                        _ = try await transaction.execute(AddNote(id: 3))
                    }
                } throws: { error in
                    if case .unavailable? = error as? PostgresError { true } else { false }
                }
                await #expect(throws: PostgresError.self) {
                    try await client.withTransaction { transaction in
                        _ = try await transaction.execute(AddNote(id: 4))
                        epoch.begin()
                    }
                }
                #expect(try await client.execute(NoteIDs()) == [1])
            }
        }
    }

    /// Runs `body` with the first of two servers, the URL of both, and a watch that begins an epoch at the second.
    private static func withTwo(
        _ body: (TemporaryCluster, _ url: String, ConnectionEpoch, Watch) async throws -> Void
    ) async throws {
        let epoch = ConnectionEpoch()
        let watch = Watch(epoch: epoch)
        try await TemporaryCluster.with { first in
            try await TemporaryCluster.with { second in
                let hosts = [first, second].map { $0.directory.replacing("/", with: "%2F") }
                try await body(first, "postgresql://postgres@\(hosts[0]),\(hosts[1])/postgres", epoch, watch)
            }
        }
    }

    @Test func `openings that hang on the server from before are begun again at the one that was found`() async throws {
        try await undisturbed {
            try await Self.withTwo { first, url, epoch, watch in
                @Sendable func configure(_ configuration: inout PostgresConfiguration) {
                    Self.configure(&configuration)
                    configuration.onConnected = watch.welcome
                }
                try await withClient(
                    {
                        configure(&$0)
                        $0.takeoverPatience = .seconds(4)
                    }, url: url, epoch: epoch
                ) { looking in
                    _ = try await looking.execute(ServerStart())
                    try await first.freeze()
                    try await withClient(
                        {
                            configure(&$0)
                            // Nothing but the news brings it away from the first.
                            $0.takeoverPatience = .seconds(500)
                            $0.connectTimeout = .seconds(500)
                            $0.acquireTimeout = .seconds(60)
                        }, url: url, epoch: epoch
                    ) { hanging in
                        let waiting = Task(executorPreference: hanging.loop) {
                            try await hanging.withTransaction { try await $0.execute(ServerStart()) }
                        }
                        _ = await looking.loop.run {
                            await #expect(throws: PostgresError.self) { try await looking.execute(ServerStart()) }
                        }
                        let found = try await waiting.value
                        let after = try await hanging.execute(ServerStart())
                        #expect(found == after)
                    }
                    try await first.thaw()
                }
            }
        }
    }

    @Test func `what is under way at the server from before is not waited for as long as that may be silent`()
        async throws
    {
        try await undisturbed {
            let epoch = ConnectionEpoch()
            try await TemporaryCluster.with { cluster in
                try await withClient(
                    {
                        Self.configure(&$0)
                        $0.takeoverPatience = .seconds(40)
                        $0.silenceTimeout = .seconds(200)
                    }, url: cluster.url, epoch: epoch
                ) { client in
                    _ = try await client.execute(ServerStart())
                    try await cluster.freeze()
                    let began = ContinuousClock.now
                    let reading = Task(executorPreference: client.loop) { try await client.execute(ServerStart()) }
                    try await eventually { client.statistics().lanes[.reads]?.inUse == 1 }
                    epoch.begin()
                    await #expect(throws: PostgresError.self) { try await reading.value }
                    #expect(began.duration(to: .now) < .seconds(30))
                    try await cluster.thaw()
                }
            }
        }
    }

    @Test func `a client that was idle while the server was frozen does not go back to it`() async throws {
        try await undisturbed {
            try await Self.withTwo { first, url, epoch, watch in
                @Sendable func configure(_ configuration: inout PostgresConfiguration) {
                    Self.configure(&configuration)
                    configuration.takeoverPatience = .seconds(4)
                    configuration.onConnected = watch.welcome
                }
                try await withClient(configure, url: url, epoch: epoch) { busy in
                    let before = try await busy.execute(ServerStart())
                    try await withClient(configure, url: url, epoch: epoch) { idle in
                        #expect(try await idle.execute(ServerStart()) == before)
                        _ = try await idle.withTransaction { try await $0.execute(ServerStart()) }
                        try await first.freeze()
                        let after = try await busy.loop.run {
                            await #expect(throws: PostgresError.self) { try await busy.execute(ServerStart()) }
                            return try await busy.execute(ServerStart())
                        }
                        #expect(after != before)
                        try await first.thaw()
                        #expect(try await idle.execute(ServerStart()) == after)
                        #expect(try await idle.withTransaction { try await $0.execute(ServerStart()) } == after)
                    }
                }
            }
        }
    }
}

/// Takes the server that was started last for the one that has taken over.
private final class Watch: Sendable {
    private let epoch: ConnectionEpoch
    private let latest = Mutex<Timestamp?>(nil)

    private struct IsEarlier: Error {}

    init(epoch: ConnectionEpoch) { self.epoch = epoch }

    func welcome(_ lease: PostgresLease) async throws {
        guard let found = try await lease.execute(ServerStart()).first else { return }
        let isEarlier = latest.withLock { latest in
            if let known = latest, found < known { return true }
            if let known = latest, found > known { lease.epoch = epoch.begin(at: lease) }
            latest = found
            return false
        }
        if isEarlier { throw IsEarlier() }
        // So that others act on the news before this one.
        if lease.isProbe { try await Task.sleep(for: .milliseconds(500)) }
    }
}

/// Of the connections that read.
private struct Backends: Statement {
    typealias Row = Int32
    static let sql: SQL<Self> = "SELECT pg_backend_pid()"
    static let isReadOnly = true
}

private struct AddBehindGate: Statement {
    typealias Row = Void
    static let sql: SQL<Self> = "INSERT INTO public.notes (id, body) SELECT \(\.id), 'text' FROM public.pass_gate()"
    let id: Int32
}
