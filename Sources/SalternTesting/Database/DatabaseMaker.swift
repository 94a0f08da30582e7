internal import Cryptography
internal import EventLoop
internal import Postgres

/// Creates and drops the databases of tests.
protocol TestDatabaseMaker: Sendable {
    func make(_ name: String) async throws
    func drop(_ name: String) async throws
}

/// Creates copies of a template on one server.
struct DatabaseMaker: TestDatabaseMaker {
    let administratorURL: String
    let url: DatabaseURL
    let migrations: [Migration]
    let loop: EventLoop
    private let sessions: KeptSessions

    init(administratorURL: String, url: DatabaseURL, migrations: [Migration], loop: EventLoop) throws {
        self.administratorURL = administratorURL
        self.url = url
        self.migrations = migrations
        self.loop = loop
        sessions = try .ofAdministrator(administratorURL)
    }

    /// Creates a database as a copy of the template of these migrations. The first call creates the template.
    func make(_ name: String) async throws {
        let template = templateName
        do {
            try await run([Self.create(name, from: template)])
        } catch {
            // The template is missing. In a new cluster the roles are missing too.
            guard error.sqlState == .unknownDatabase || error.sqlState == .undefinedObject else { throw error }
            try await makeTemplate(template)
            try await run([Self.create(name, from: template)])
        }
    }

    func drop(_ name: String) async throws {
        try await run(["DROP DATABASE IF EXISTS \(name) WITH (FORCE)"])
    }

    /// Creates the template once: one test of all processes at a time creates templates, and the others find it.
    private func makeTemplate(_ template: String) async throws {
        try await withLock { try await buildTemplate(template) }
    }

    private func buildTemplate(_ template: String) async throws {
        try await run([TestRoles.script])
        if try await exists(template) { return }
        // The template has another name until it is complete, so that no test copies an incomplete one.
        let building = template + "_new"
        try await run([
            "DROP DATABASE IF EXISTS \(building) WITH (FORCE)",
            Self.create(building, from: "template0"),
        ])
        let configuration = try PostgresConfiguration.patient(
            url.with(database: building, credentials: TestRoles.owner + ":" + TestRoles.password))
        try await Migrator(configuration: configuration, migrations: migrations, loop: loop).up()
        try await run(["ALTER DATABASE \(building) RENAME TO \(template)"])
    }

    private func exists(_ template: String) async throws -> Bool {
        do {
            // A script has one way to query the catalogue: it fails.
            try await run(["DO $$ BEGIN ASSERT EXISTS (SELECT FROM pg_database WHERE datname = '\(template)'); END $$"])
            return true
        } catch {
            guard error.sqlState == Self.assertFailure else { throw error }
            return false
        }
    }

    /// Runs `body` while a separate session holds the lock of all makers.
    private func withLock(_ body: @escaping @Sendable () async throws -> Void) async throws {
        var configuration = try PostgresConfiguration.patient(administratorURL)
        configuration.readConnections = 0
        configuration.commitConnections = 0
        configuration.leasedConnections = 1
        configuration.statementTimeout = .seconds(300)
        configuration.lockTimeout = .seconds(300)
        configuration.silenceTimeout = .seconds(301)
        let settled = configuration
        try await loop.run { try await Self.holdLock(settled, loop, body) }
    }

    private static func holdLock(
        _ configuration: PostgresConfiguration, _ loop: EventLoop, _ body: @Sendable () async throws -> Void
    ) async throws {
        let client = PostgresClient(configuration: configuration, loop: loop)
        do {
            try await client.withConnection { lease in
                _ = try await lease.execute(LockMakers())
                try await body()
            }
        } catch {
            await client.shutdown()
            throw error
        }
        await client.shutdown()
    }

    private func run(_ scripts: [String]) async throws(PostgresError) {
        try await sessions.runPatiently(scripts)
    }

    private static let assertFailure = SQLState("P0004")

    /// Copies files. For small databases this takes half the work of the default, which writes a log.
    static func create(_ name: String, from template: String) -> String {
        "CREATE DATABASE \(name) OWNER \(TestRoles.owner) TEMPLATE \(template) STRATEGY file_copy"
    }

    /// The name of the template, by its content: other migrations, or another format of this maker, have another one.
    private var templateName: String {
        var hash = SHA256.Incremental()
        hash.update("2".utf8)
        for migration in migrations {
            hash.update("\(migration.version) \(migration.name) ".utf8)
            hash.update(migration.checksum)
        }
        return "saltern_template_" + Hex.encode(hash.finalize().bytes.prefix(8))
    }
}

/// A lock that is held until the end of its session.
private struct LockMakers: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "SELECT pg_advisory_lock(7305790194)"
}
