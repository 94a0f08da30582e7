public import Postgres

extension DatabaseClock {
    /// Asks the database what time it is.
    public func compare(with database: PostgresClient) async throws(PostgresError) {
        let asked = reading
        guard let found = try await database.execute(ReadDatabase()).first else { return }
        set(to: found.time, askedAt: asked)
    }

    /// The database's time, for a program that needs it once.
    public static func now(of database: PostgresClient) async throws(PostgresError) -> Timestamp {
        let clock = DatabaseClock()
        try await clock.compare(with: database)
        return clock.now
    }
}
