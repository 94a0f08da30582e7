internal import EventLoop
public import HTTPCore
public import Postgres
public import SalternServer
internal import Synchronization

/// The whole service on a database of its own, without sockets: one loop, one application, a clock that tests move.
public final class TestApplication: Sendable {
    public let database: TemporaryDatabase
    public let clock: ManualClock
    public let log: CapturedLog
    public let metrics: RequestMetrics
    public let configuration: ServiceConfiguration
    /// The client that the application uses, with the rights of the server's role.
    public let postgres: PostgresClient
    /// The watcher that wakes the application's streams.
    public let revisions: RevisionWatcher
    /// The outgoing events of the application's requests.
    public let outbox: Outbox
    private let administrator: KeptSessions
    private let owners: KeptClients
    private let watching: Task<Void, Never>
    private let watch: DatabaseWatch
    private let loop: EventLoop
    private let application: Application

    /// The default configuration of tests. All their requests come from one address at one moment, so rate limits are
    /// off.
    public static let configuration = ServiceConfiguration(
        name: "Test", version: "1", saltPrefix: "com.example.test:", masterKey: .random(), rateLimits: .off,
        tokens: TokenPolicy(
            issuer: TokenIssuer("https://sync.example.com"), keys: try? .first(at: Timestamp(unixSeconds: 0)),
            audiences: ["billing", "support=account+userid"].compactMap { Audience($0) }))

    /// Creates a database, starts the service on it, passes it to `body` and removes everything afterwards.
    ///
    /// - Parameters:
    ///   - configuration: The service's configuration.
    ///   - connections: The number of shared connections for writing requests. Reading ones have half as many.
    ///   - tally: Decides at which log-ins an account's sessions are counted.
    ///   - acquireTimeout: The limit of the wait for a connection. By default only tests of the limit reach it.
    ///   - body: The test.
    public static func with<Result: Sendable>(
        _ configuration: ServiceConfiguration = TestApplication.configuration, connections: Int = 1,
        tally: SessionTally = SessionTally(), acquireTimeout: Duration = .seconds(120),
        _ body: (TestApplication) async throws -> Result
    ) async throws -> Result {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let clock = ManualClock()
            return try await with(
                configuration, database, clock: clock, connections: connections, tally: tally,
                acquireTimeout: acquireTimeout, body)
        }
    }

    /// Starts the service on an existing database, as a further node does.
    public static func with<Result: Sendable>(
        _ configuration: ServiceConfiguration = TestApplication.configuration, _ database: TemporaryDatabase,
        clock: ManualClock, connections: Int = 1, tally: SessionTally = SessionTally(),
        acquireTimeout: Duration = .seconds(120), _ body: (TestApplication) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop(name: "test application")
        try loop.start()
        defer { loop.stop() }
        var settings = try PostgresConfiguration.patient(database.serverURL)
        settings.readConnections = (connections + 1) / 2
        settings.commitConnections = connections
        settings.allowsSequentialScans = false
        settings.acquireTimeout = acquireTimeout
        settings.backOff = .milliseconds(10)...(.milliseconds(500))
        let application = try await start(configuration, database, settings, clock, tally, loop)
        do {
            let result = try await body(application)
            await application.shutdown()
            return result
        } catch {
            await application.shutdown()
            throw error
        }
    }

    private static func start(
        _ configuration: ServiceConfiguration, _ database: TemporaryDatabase, _ settings: PostgresConfiguration,
        _ clock: ManualClock, _ tally: SessionTally, _ loop: EventLoop
    ) async throws -> TestApplication {
        let log = CapturedLog()
        let metrics = RequestMetrics()
        let revisions = RevisionWatcher(sessions: configuration.sessions, keepAlive: .seconds(1))
        let capturing = Log(minimumLevel: .debug, sink: log) { UTCTimestamp(microsecondsSinceEpoch: 0) }
        let outbox = Outbox()
        let start = clock.now
        let nodeState = NodeState(configuration.rateLimits, sessions: tally, readinessDeadline: .seconds(120)) {
            clock.now - start
        }
        var settings = settings
        let epoch = ConnectionEpoch()
        let watch = DatabaseWatch(clock: nil, failover: .asynchronous, epoch: epoch, log: capturing)
        settings.onConnected = watch.welcome
        let postgres = await loop.run { [settings] in
            PostgresClient(configuration: settings, loop: loop, epoch: epoch)
        }
        do {
            let administrator = try KeptSessions(database.administratorURL, loop: loop)
            let owners = try KeptClients(database.ownerURL, loop: loop)
            let application = try await loop.run {
                Application(
                    configuration: configuration,
                    installation: try await Installation.load(
                        configuration: configuration, database: postgres, clock: clock),
                    database: postgres, revisions: revisions, nodeState: nodeState, log: capturing, metrics: metrics,
                    clock: clock, outbox: outbox, pace: Pace { await loop.giveWay() })
            }
            let watching = Task(executorPreference: loop) {
                await revisions.run(database: postgres, clock: clock, log: capturing)
            }
            return TestApplication(
                database: database, clock: clock, log: log, metrics: metrics, configuration: configuration,
                postgres: postgres, revisions: revisions, outbox: outbox, administrator: administrator, owners: owners,
                watching: watching,
                watch: watch, loop: loop, application: application)
        } catch {
            await loop.run { await postgres.shutdown() }
            throw error
        }
    }

    private init(
        database: TemporaryDatabase, clock: ManualClock, log: CapturedLog, metrics: RequestMetrics,
        configuration: ServiceConfiguration, postgres: PostgresClient, revisions: RevisionWatcher, outbox: Outbox,
        administrator: KeptSessions, owners: KeptClients,
        watching: Task<Void, Never>, watch: DatabaseWatch, loop: EventLoop, application: Application
    ) {
        self.database = database
        self.clock = clock
        self.log = log
        self.metrics = metrics
        self.configuration = configuration
        self.postgres = postgres
        self.revisions = revisions
        self.outbox = outbox
        self.administrator = administrator
        self.owners = owners
        self.watching = watching
        self.watch = watch
        self.loop = loop
        self.application = application
    }

    /// A client without a token.
    public var client: TestClient { TestClient(application: self) }

    /// All routes of the application.
    public var routes: [Route<RouteMetadata>] { application.router.routes }

    /// Runs `body` on the application's loop, which its database client requires.
    public func run<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) async throws -> Result {
        try await loop.run(body)
    }

    /// Executes a statement with the rights of the server's role.
    public func execute<S: Statement>(_ statement: S) async throws -> [S.Row] {
        let postgres = postgres
        return try await loop.run { try await postgres.execute(statement) }
    }

    /// Runs `body` with the rights of the schema's owner. Its client stays connected for later calls.
    public func asOwner<Result: Sendable>(
        _ body: @escaping @Sendable (PostgresClient) async throws -> Result
    ) async throws -> Result {
        try await owners.run(body)
    }

    /// Checks the database, as a server does every few seconds.
    public func look() async throws {
        try await loop.run { [watch, postgres] in try await watch.look(postgres) }
    }

    /// Runs SQL as the superuser.
    public func administer(_ sql: String) async throws { try await administrator.run([sql]) }

    /// Runs SQL on a separate connection.
    public func script(_ sql: String, url: String) async throws {
        try await PostgresScript.run([sql], configuration: .patient(url), loop: loop)
    }

    /// Ends all connections to the database and rejects new ones, like a stopped server.
    public func closeDatabase() async throws {
        let administrator = try TestEnvironment.administratorURL()
        try await script("ALTER DATABASE \(database.name) ALLOW_CONNECTIONS false", url: administrator)
        // The function returns false for a session that does not end in time.
        try await script(
            """
            DO $$
            BEGIN
                FOR attempt IN 1..60 LOOP
                    PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '\(database.name)';
                    PERFORM pg_stat_clear_snapshot();
                    EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '\(database.name)');
                END LOOP;
                ASSERT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '\(database.name)');
            END $$
            """,
            url: administrator)
    }

    /// Accepts connections to the database again.
    public func openDatabase() async throws {
        try await script(
            "ALTER DATABASE \(database.name) ALLOW_CONNECTIONS true", url: TestEnvironment.administratorURL())
    }

    /// Sends one request through admission, body limit and handler, as a connection does.
    ///
    /// Reads a stream to its end. A stream without an end needs ``stream(_:)``.
    func respond(to head: RequestHead, body: [UInt8]) async throws -> TestResponse {
        let answer = answer(to: head, body: body)
        return try await loop.run {
            let response = await answer()
            switch response.body {
            case .none: return TestResponse(response, body: [])
            case .bytes(let bytes): return TestResponse(response, body: Array(bytes))
            case .stream where head.method == .head: return TestResponse(response, body: [])
            case .stream(let stream):
                precondition(!stream.isOpenEnded, "a stream without an end is never read to its end")
                let collected = CollectedBody()
                try await stream.produce(collected)
                return TestResponse(response, body: collected.bytes)
            }
        }
    }

    /// Sends one request, and reads its reply during its production. A reply other than a stream is complete at once.
    func stream(_ head: RequestHead) async -> TestStream {
        let answer = answer(to: head, body: [])
        let response = await loop.run { await answer() }
        let (pieces, continuation) = AsyncStream<[UInt8]>.makeStream()
        guard case .stream(let stream) = response.body else {
            continuation.finish()
            let body = if case .bytes(let bytes) = response.body { Array(bytes) } else { [UInt8]() }
            return TestStream(response: TestResponse(response, body: body), pieces: pieces, task: nil)
        }
        let task = Task(executorPreference: loop) {
            try? await stream.produce(CollectedBody(pieces: continuation))
            continuation.finish()
        }
        return TestStream(response: TestResponse(response, body: []), pieces: pieces, task: task)
    }

    /// Sends one request, and produces its reply into `body`, which may suspend the producer. Writes only streams.
    func respond(to head: RequestHead, into body: any ResponseBodyWriter) async throws -> TestResponse {
        let answer = answer(to: head, body: [])
        return try await loop.run {
            let response = await answer()
            if case .stream(let stream) = response.body { try await stream.produce(body) }
            return TestResponse(response, body: [])
        }
    }

    private func answer(to head: RequestHead, body: [UInt8]) -> @Sendable () async -> Response {
        { [application] in
            let client = ClientAddress(address: "192.0.2.1", port: 50_000)
            switch application.admit(head, from: client) {
            case .refuse(let response): return response
            case .accept(let plan):
                guard body.count <= plan.bodyLimit else {
                    return application.refusal(
                        .bodyTooLarge(limit: plan.bodyLimit), of: await Self.known(head, plan), from: client)
                }
                plan.body?.fill(with: ZeroizingBuffer(body))
                return await plan.respond()
            }
        }
    }

    /// Returns the data that a connection has about a request during its body.
    private static func known(_ head: RequestHead, _ plan: RequestPlan) async -> KnownRequest {
        guard case .memoryOwner(let memoryOwner)? = await plan.identify?() else { return KnownRequest(head: head) }
        return KnownRequest(head: head, memoryOwner: memoryOwner)
    }

    private func shutdown() async {
        watching.cancel()
        await watching.value
        await administrator.close()
        await owners.close()
        let postgres = postgres
        await loop.run { await postgres.shutdown() }
    }
}

/// Keeps all log lines, so that a test can search for required and forbidden text.
public final class CapturedLog: LogSink {
    private let captured = Mutex<[String]>([])

    public init() {}

    public func write(_ line: ZeroizingBuffer, level: LogLevel) {
        captured.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
    }

    /// The lines so far.
    public var lines: [String] { captured.withLock { $0 } }
}

/// A clock that only tests move.
public final class ManualClock: WallClock {
    private let time: Mutex<Timestamp>

    /// Creates a clock with the time `now`, by default 2026-01-01 00:00:00 UTC.
    public init(_ now: Timestamp = Timestamp(unixSeconds: 1_767_225_600)) {
        time = Mutex(now)
    }

    public var now: Timestamp { time.withLock { $0 } }

    /// Moves the clock forward.
    public func advance(by duration: Duration) {
        time.withLock { $0 = $0 + duration }
    }
}
