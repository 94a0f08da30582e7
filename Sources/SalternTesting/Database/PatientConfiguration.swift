internal import EventLoop
public import HTTPServer
public import Postgres

extension PostgresConfiguration {
    /// Returns a configuration with time limits that no test reaches, even on a busy machine.
    public static func patient(_ url: String) throws(PostgresError) -> PostgresConfiguration {
        var configuration = try PostgresConfiguration(url)
        configuration.becomePatient()
        return configuration
    }

    /// Raises all time limits above the needs of a busy machine.
    public mutating func becomePatient() {
        acquireTimeout = .seconds(120)
        connectTimeout = .seconds(60)
        statementTimeout = .seconds(120)
        lockTimeout = .seconds(60)
        commitPatience = .seconds(120)
        silenceTimeout = .seconds(180)
        takeoverPatience = .seconds(120)
        idleInTransactionTimeout = .seconds(900)
    }
}

extension HTTPServerConfiguration {
    /// Raises the time limits of clients' requests above the needs of a busy machine.
    public mutating func becomePatient() {
        handshakeDeadline = .seconds(300)
        headerDeadline = .seconds(300)
        bodyWindow = .seconds(300)
        writeDeadline = .seconds(300)
    }
}

extension PostgresScript {
    /// Runs scripts that need a database without other connections, and repeats them while there are some.
    ///
    /// On a busy machine, the end of a session takes longer than PostgreSQL waits for it, which is five seconds.
    static func runPatiently(
        _ scripts: [String], configuration: PostgresConfiguration, loop: EventLoop
    ) async throws(PostgresError) {
        for _ in 0..<24 {
            do {
                return try await run(scripts, configuration: configuration, loop: loop)
            } catch {
                guard error.sqlState == .objectInUse else { throw error }
            }
        }
        try await run(scripts, configuration: configuration, loop: loop)
    }
}
