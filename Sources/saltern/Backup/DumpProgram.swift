import CommandLineKit

/// The version of `pg_dump`, which must be at least that of the server.
enum DumpProgram {
    /// Returns the major version of the `pg_dump` that a backup would call, such as 15.
    /// - Throws: ``CommandFailure`` when there is none, or when its reply has no version.
    static func majorVersion(_ console: Console) async throws -> Int {
        let reply = try await onOwnThread { try DatabaseProgram("pg_dump", console).run(["--version"]) }
        guard let version = majorVersion(in: reply) else {
            throw CommandFailure("pg_dump --version has an unknown form: \(reply)")
        }
        return version
    }

    /// Returns 15 for `pg_dump (PostgreSQL) 15.4 (Debian 15.4-1)`.
    static func majorVersion(in reply: String) -> Int? {
        reply.firstMatch(of: /\(PostgreSQL\) ([0-9]+)/).flatMap { Int($0.1) }
    }

    /// Returns the reason why a `pg_dump` cannot read a server; nil if it can.
    /// - Parameters:
    ///   - program: The major version of `pg_dump`.
    ///   - server: `server_version_num`: 170002 for 17.2.
    static func obstacle(program: Int, server: Int32) -> String? {
        let server = Int(server) / 10_000
        guard program < server else { return nil }
        return "pg_dump is of PostgreSQL \(program) and the server of PostgreSQL \(server), and pg_dump reads no newer "
            + "server: install postgresql-client-\(server)"
    }

    /// Returns the reason why the same release's programs could not restore a backup into the server; nil if they
    /// could.
    ///
    /// From 17 on, `pg_restore` writes a setting (`transaction_timeout`) that older servers reject.
    static func obstacleToRestore(program: Int, server: Int32) -> String? {
        let server = Int(server) / 10_000
        guard program >= 17, server < 17 else { return nil }
        return "pg_restore is of PostgreSQL \(program), and writes a setting that the server, of PostgreSQL \(server), "
            + "rejects: a restore would fail. Install postgresql-client-\(server)"
    }
}
