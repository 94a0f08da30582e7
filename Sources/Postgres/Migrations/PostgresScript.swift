public import EventLoop

/// Administrative SQL that the program itself composes, without values from outside.
public enum PostgresScript {
    /// Runs `scripts` in order on one connection of their own and discards the results.
    ///
    /// Each is one request of the simple protocol, so `CREATE DATABASE` works as well as several statements in one
    /// text.
    public static func run(
        _ scripts: [String], configuration: PostgresConfiguration, loop: EventLoop
    ) async throws(PostgresError) {
        try await loop.run { () async throws(PostgresError) in
            let connection = try await ScriptConnection.open(configuration, loop: loop)
            defer { connection.close() }
            for script in scripts { try await connection.run(script) }
        }
    }
}
