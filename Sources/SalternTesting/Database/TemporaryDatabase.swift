internal import Cryptography
internal import EventLoop
internal import Glibc
public import Postgres

/// A migrated database of one test, copied from a template within a fraction of a second and dropped afterwards.
public struct TemporaryDatabase: Sendable {
    /// The database's name.
    public let name: String
    /// The URL of the superuser.
    public let administratorURL: String
    /// The URL of the role that owns the database and its schema.
    public let ownerURL: String
    /// The URL of a role in the group `saltern_server`, to which the migrations grant the server's rights.
    public let serverURL: String

    /// More databases at a time only slow each test down, until connections exceed their time limits.
    private static let turnstile = Turnstile(places: TestEnvironment.isCluster ? 3 : 16)

    /// Creates a database with these migrations, passes it to `body`, and drops it.
    ///
    /// The first call for a list of migrations creates a template, named by their checksum. Other tests and processes
    /// also use it.
    public static func with<Result: Sendable>(
        migrations: [Migration], _ body: (TemporaryDatabase) async throws -> Result
    ) async throws -> Result {
        await turnstile.enter()
        do {
            let result = try await make(migrations, body)
            await turnstile.leave()
            return result
        } catch {
            await turnstile.leave()
            throw error
        }
    }

    /// Runs SQL as the superuser, on a separate connection.
    public func administer(_ sql: String) async throws {
        let loop = try EventLoop(name: "test database")
        try loop.start()
        defer { loop.stop() }
        try await PostgresScript.run([sql], configuration: .patient(administratorURL), loop: loop)
    }

    private static func make<Result: Sendable>(
        _ migrations: [Migration], _ body: (TemporaryDatabase) async throws -> Result
    ) async throws -> Result {
        let administrator = try TestEnvironment.administratorURL()
        let url = try DatabaseURL(administrator)
        let name = "saltern_test_" + Hex.encode(SecureRandom.bytes(8))
        let workers = TestEnvironment.workerURLs
        let entry = TestEnvironment.entersByWorker ? try workers.first.map(DatabaseURL.init) ?? url : url
        let database = TemporaryDatabase(
            name: name, administratorURL: url.with(database: name),
            ownerURL: url.with(database: name, credentials: TestRoles.owner + ":" + TestRoles.password),
            serverURL: entry.with(database: name, credentials: TestRoles.server + ":" + TestRoles.password))
        let loop = try EventLoop(name: "test database")
        try loop.start()
        defer { loop.stop() }
        let maker: any TestDatabaseMaker =
            workers.isEmpty
            ? try DatabaseMaker(administratorURL: administrator, url: url, migrations: migrations, loop: loop)
            : try ClusterDatabaseMaker(coordinator: url, workers: workers, migrations: migrations, loop: loop)
        try await maker.make(name)
        do {
            let result = try await body(database)
            try await maker.drop(name)
            return result
        } catch {
            try? await maker.drop(name)
            throw error
        }
    }
}

extension TemporaryDatabase {
    /// Copies the database in its present state, like a restored backup, passes the copy to `body`, and drops it. The
    /// original must have no connections during the copy.
    public func withCopy<Result: Sendable>(
        _ body: (TemporaryDatabase) async throws -> Result
    ) async throws -> Result {
        let copyName = "saltern_test_" + Hex.encode(SecureRandom.bytes(8))
        let administration = try KeptSessions.ofAdministrator(TestEnvironment.administratorURL())
        try await administration.runPatiently([DatabaseMaker.create(copyName, from: name)])
        let copy = TemporaryDatabase(
            name: copyName, administratorURL: administratorURL.replacing(name, with: copyName),
            ownerURL: ownerURL.replacing(name, with: copyName), serverURL: serverURL.replacing(name, with: copyName))
        let drop = "DROP DATABASE IF EXISTS \(copyName) WITH (FORCE)"
        do {
            let result = try await body(copy)
            try await administration.runPatiently([drop])
            return result
        } catch {
            try? await administration.runPatiently([drop])
            throw error
        }
    }
}

extension TemporaryDatabase {
    /// Passes the same database to `body`, with a proxy on the server's connections. Other connections are unaffected.
    public func withProxy<Result: Sendable>(
        _ body: (TemporaryDatabase, CuttingProxy) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop(name: "test database")
        try loop.start()
        defer { loop.stop() }
        let configuration = try PostgresConfiguration.patient(administratorURL)
        let paths = try await loop.run {
            let client = PostgresClient(configuration: configuration, loop: loop)
            do {
                let paths = try await client.execute(FindSocket())
                await client.shutdown()
                return paths
            } catch {
                await client.shutdown()
                throw error
            }
        }
        let proxy = try CuttingProxy(to: paths.first ?? "")
        defer { proxy.stop() }
        let proxied = TemporaryDatabase(
            name: name, administratorURL: administratorURL, ownerURL: ownerURL, serverURL: proxy.url(of: serverURL))
        return try await body(proxied, proxy)
    }
}

private struct FindSocket: Statement {
    typealias Row = String

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT split_part(current_setting('unix_socket_directories'), ',', 1) || '/.s.PGSQL.' || current_setting('port')
        """
}

/// The PostgreSQL of the tests, from the environment.
public enum TestEnvironment {
    /// The reason for which a test that needs PostgreSQL cannot run.
    public struct Missing: Error, CustomStringConvertible {
        public var description: String {
            "SALTERN_TEST_DATABASE_URL is not set: run scripts/test, which starts a private PostgreSQL and sets it"
        }
    }

    /// Returns the URL of a superuser on a PostgreSQL in which tests may create databases and roles.
    /// - Throws: ``Missing``. The test then fails, because a skipped test proves nothing.
    public static func administratorURL() throws -> String {
        guard let value = getenv("SALTERN_TEST_DATABASE_URL") else { throw Missing() }
        return String(cString: value)
    }

    /// The URLs of the workers' superusers (`SALTERN_TEST_CLUSTER_WORKERS`, separated by spaces) if
    /// ``administratorURL()`` is the coordinator of a cluster. Databases are created on all nodes then, and
    /// distributed.
    static var workerURLs: [String] {
        guard let value = getenv("SALTERN_TEST_CLUSTER_WORKERS") else { return [] }
        return String(cString: value).split(separator: " ").map(String.init)
    }

    /// True when databases are distributed over the nodes of a cluster.
    public static var isCluster: Bool { !workerURLs.isEmpty }

    /// True when servers connect to a worker instead of the coordinator (`SALTERN_TEST_CLUSTER_ENTRY=worker`).
    static var entersByWorker: Bool {
        getenv("SALTERN_TEST_CLUSTER_ENTRY").map { String(cString: $0) == "worker" } ?? false
    }
}
