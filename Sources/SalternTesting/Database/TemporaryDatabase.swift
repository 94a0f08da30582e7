internal import Cryptography
internal import EventLoop
public import Postgres

/// A migrated database of one test: made from a template in a fraction of a second, dropped afterwards.
public struct TemporaryDatabase: Sendable {
    /// The database's name.
    public let name: String
    /// The URL of the superuser.
    public let administratorURL: String
    /// The URL of the role that owns the database and its schema.
    public let ownerURL: String
    /// The URL of a role that is in the group `saltern_server`, to which the migrations grant what the server may do.
    public let serverURL: String

    /// More databases at a time would only make each test slower, until connections take longer than they may.
    private static let turnstile = Turnstile(places: TestEnvironment.isCluster ? 3 : 16)

    /// Makes a database with these migrations, lends it to `body`, and drops it.
    ///
    /// The first call for a list of migrations makes a template under a name that is their checksum; other tests and
    /// other processes use it too.
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

    /// Runs SQL as the superuser, on a connection of its own.
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
            ? DatabaseMaker(administratorURL: administrator, url: url, migrations: migrations, loop: loop)
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
