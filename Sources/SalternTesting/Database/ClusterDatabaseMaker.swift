internal import EventLoop
internal import Postgres
internal import SalternServer

/// Creates databases that are distributed over the nodes of a cluster, each without a template. The nodes store each
/// other's addresses by database.
struct ClusterDatabaseMaker: TestDatabaseMaker {
    /// The nodes, the coordinator first.
    private let nodes: [DatabaseURL]
    private let migrations: [Migration]
    private let loop: EventLoop

    /// Admits one creation at a time. The first one also creates the roles that all share.
    private static let turnstile = Turnstile(places: 1)

    init(coordinator: DatabaseURL, workers: [String], migrations: [Migration], loop: EventLoop) throws {
        nodes = [coordinator] + (try workers.map(DatabaseURL.init))
        self.migrations = migrations
        self.loop = loop
    }

    func make(_ name: String) async throws {
        await Self.turnstile.enter()
        do {
            try await build(name)
            await Self.turnstile.leave()
        } catch {
            await Self.turnstile.leave()
            throw error
        }
    }

    func drop(_ name: String) async throws {
        for node in nodes {
            try await KeptSessions.ofAdministrator(node.with(database: "postgres")).runPatiently(
                ["DROP DATABASE IF EXISTS \(name) WITH (FORCE)"])
        }
    }

    private func build(_ name: String) async throws {
        for node in nodes {
            try await run(
                [TestRoles.script, "CREATE DATABASE \(name) OWNER \(TestRoles.owner)"],
                on: node.with(database: "postgres"))
            try await run(["CREATE EXTENSION citus"], on: node.with(database: name))
        }
        // Two shards for each worker: each shard is a further table to create for each table.
        try await run(
            ["ALTER DATABASE \(name) SET citus.shard_count = 4"], on: nodes[0].with(database: "postgres"))
        var introductions: [String] = []
        for (index, node) in nodes.enumerated() {
            guard let address = node.node else { throw DatabaseURL.Malformed() }
            let function = index == 0 ? "citus_set_coordinator_host" : "citus_add_node"
            introductions.append("SELECT \(function)('\(address.name)', \(address.port))")
        }
        try await run(introductions, on: nodes[0].with(database: name))
        let owner = nodes[0].with(database: name, credentials: TestRoles.owner + ":" + TestRoles.password)
        // Tests of other migrations have tables of their own, which are not distributed.
        if migrations.count == Schema.migrations.count {
            let early = try migrator(migrations.prefix(Self.earlyMigrations), owner)
            try await early.up()
            _ = try await early.distribute()
        }
        try await migrator(migrations[...], owner).up()
    }

    /// The number of migrations before the distribution, so that all later ones run on distributed tables. The ninth
    /// cannot: it adds a constraint in one ALTER TABLE with others, which Citus rejects. No release before it supported
    /// clusters.
    private static let earlyMigrations = 9

    private func migrator(_ migrations: ArraySlice<Migration>, _ owner: String) throws -> Migrator {
        try Migrator(
            configuration: .patient(owner), migrations: Array(migrations), placements: Schema.placements, loop: loop)
    }

    private func run(_ scripts: [String], on url: String) async throws {
        try await PostgresScript.run(scripts, configuration: .patient(url), loop: loop)
    }
}

/// The roles that all temporary databases of a cluster share.
enum TestRoles {
    static let owner = "saltern_test_owner"
    static let server = "saltern_test_server"
    /// No secret: the roles exist only in the temporary PostgreSQL of a test run.
    static let password = "throw-away"

    /// Creates the group that migrations grant rights to, and the two login roles. Runs under the makers' lock.
    static let script = """
        DO $$
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'saltern_server') THEN
                CREATE ROLE saltern_server NOLOGIN;
            END IF;
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '\(owner)') THEN
                CREATE ROLE \(owner) LOGIN PASSWORD '\(password)';
            END IF;
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '\(server)') THEN
                CREATE ROLE \(server) LOGIN PASSWORD '\(password)' IN ROLE saltern_server;
            END IF;
        END
        $$
        """
}

/// Admits a fixed number of tasks at a time. The others wait, first in, first out.
actor Turnstile {
    private var places: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(places: Int) {
        self.places = places
    }

    func enter() async {
        if places > 0 {
            places -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    func leave() {
        if waiting.isEmpty {
            places += 1
        } else {
            waiting.removeFirst().resume()
        }
    }
}

/// A PostgreSQL URL with exchangeable user and database.
struct DatabaseURL: CustomStringConvertible {
    private let prefix: String
    private let host: String
    private let query: String
    private let user: String

    /// The error of an invalid URL.
    struct Malformed: Error, CustomStringConvertible {
        let description = "SALTERN_TEST_DATABASE_URL has to look like postgresql://USER@HOST:PORT/DATABASE"
    }

    /// Reads `postgresql://[user[:password]@]host[:port][/database][?parameters]`.
    init(_ text: String) throws {
        guard let schemeEnd = text.firstRange(of: "://") else { throw Malformed() }
        prefix = String(text[..<schemeEnd.upperBound])
        var rest = text[schemeEnd.upperBound...]
        query = rest.firstIndex(of: "?").map { String(rest[$0...]) } ?? ""
        rest = rest.prefix { $0 != "?" }
        let authority = rest.prefix { $0 != "/" }
        if let at = authority.lastIndex(of: "@") {
            user = String(authority[..<at])
            host = String(authority[authority.index(after: at)...])
        } else {
            user = ""
            host = String(authority)
        }
    }

    /// The server's name and port. Nil for a URL without TCP.
    var node: (name: String, port: Int)? {
        let parts = host.split(separator: ":")
        guard parts.count == 2, let port = Int(parts[1]) else { return nil }
        return (String(parts[0]), port)
    }

    /// Returns the URL of another database on the same server, and of another user if one is given.
    func with(database: String, credentials: String? = nil) -> String {
        let user = credentials ?? user
        return prefix + (user.isEmpty ? "" : user + "@") + host + "/" + database + query
    }

    var description: String { "DatabaseURL(redacted)" }
}
