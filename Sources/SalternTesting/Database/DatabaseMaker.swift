internal import Cryptography
internal import EventLoop
internal import Postgres

/// Makes and drops the databases of tests.
struct DatabaseMaker: Sendable {
    let administratorURL: String
    let url: DatabaseURL
    let migrations: [Migration]
    let loop: EventLoop

    /// A database named `name`, copied from the template of these migrations.
    func make(_ name: String) async throws {
        let template = templateName
        // Copying fails while another copy of the same template is being made, hence the lock around both.
        try await run([
            Self.lock, TestRoles.script,
            """
            DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_database WHERE datname = '\(template)' AND datistemplate) THEN
                    RAISE EXCEPTION USING ERRCODE = '\(Self.noTemplate.code)';
                END IF;
            END $$
            """,
            Self.create(name, from: template),
        ]) { state async throws in
            guard state == Self.noTemplate else { return false }
            try await makeTemplate(template)
            return true
        }
    }

    func drop(_ name: String) async throws {
        try await run(["DROP DATABASE IF EXISTS \(name) WITH (FORCE)"]) { _ in false }
    }

    /// Several processes may get here at once: each builds under a name of its own, and the first to rename wins.
    private func makeTemplate(_ template: String) async throws {
        let building = template + "_" + Hex.encode(SecureRandom.bytes(4))
        try await run([Self.create(building, from: "template0")]) { _ in false }
        let configuration = try PostgresConfiguration(
            url.with(database: building, credentials: TestRoles.owner + ":" + TestRoles.password))
        try await Migrator(configuration: configuration, migrations: migrations, loop: loop).up()
        do {
            try await run([
                Self.lock,
                "ALTER DATABASE \(building) RENAME TO \(template)",
                "ALTER DATABASE \(template) IS_TEMPLATE true",
            ]) { _ in false }
        } catch let error as PostgresError where error.sqlState == .duplicateDatabase {
            try await drop(building)
        }
    }

    /// Runs scripts; when they fail, `recover` is asked whether they may be run once more.
    private func run(_ scripts: [String], recover: (SQLState?) async throws -> Bool) async throws {
        let configuration = try PostgresConfiguration(administratorURL)
        do {
            try await PostgresScript.run(scripts, configuration: configuration, loop: loop)
        } catch {
            guard try await recover(error.sqlState) else { throw error }
            try await PostgresScript.run(scripts, configuration: configuration, loop: loop)
        }
    }

    private static let noTemplate = SQLState("ST001")

    /// Held until the connection closes: tests of this and of other processes take turns.
    private static let lock = "SELECT pg_advisory_lock(7305790194)"

    private static func create(_ name: String, from template: String) -> String {
        "CREATE DATABASE \(name) OWNER \(TestRoles.owner) TEMPLATE \(template)"
    }

    /// The name is the content: other migrations, or another format of this maker, make another template.
    private var templateName: String {
        var hash = SHA256.Incremental()
        hash.update("1".utf8)
        for migration in migrations {
            hash.update("\(migration.version) \(migration.name) ".utf8)
            hash.update(migration.checksum)
        }
        return "saltern_template_" + Hex.encode(hash.finalize().bytes.prefix(8))
    }
}
