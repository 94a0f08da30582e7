public import EventLoop

/// Administration by texts of SQL that the program itself composes; never with a value from outside.
public enum PostgresScript {
    /// Runs `scripts` in order on one connection of their own, each as one request of the simple protocol, so that
    /// `CREATE DATABASE` works as well as several statements in one text. Results are dropped.
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
