import Postgres

extension Settings {
    /// The connection of the server: `SALTERN_DATABASE_URL`.
    mutating func serverDatabase() -> PostgresConfiguration? {
        database(
            requiredText("SALTERN_DATABASE_URL", "where PostgreSQL is, as a URL or in keyword form"),
            "SALTERN_DATABASE_URL")
    }

    /// The connection of the schema's owner: `SALTERN_OWNER_DATABASE_URL`, else the server's.
    mutating func ownerDatabase() -> PostgresConfiguration? {
        if let text = text("SALTERN_OWNER_DATABASE_URL") { return database(text, "SALTERN_OWNER_DATABASE_URL") }
        return serverDatabase()
    }

    mutating func database(_ text: String, _ name: String) -> PostgresConfiguration? {
        guard !text.isEmpty else { return nil }
        do throws(PostgresError) {
            return try PostgresConfiguration(text)
        } catch {
            note("\(name): \(error)")
            return nil
        }
    }
}
