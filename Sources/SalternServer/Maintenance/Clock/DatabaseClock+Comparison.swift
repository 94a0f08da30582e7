public import Postgres

extension DatabaseClock {
    /// Sets the clock by the database's time.
    public func compare(with database: PostgresClient) async throws(PostgresError) {
        let asked = reading
        guard let found = try await database.execute(ReadDatabase()).first else { return }
        set(to: found.time, askedAt: asked)
    }

    /// Returns the database's time, for programs that need it once.
    public static func now(of database: PostgresClient) async throws(PostgresError) -> Timestamp {
        let clock = DatabaseClock()
        try await clock.compare(with: database)
        return clock.now
    }
}
