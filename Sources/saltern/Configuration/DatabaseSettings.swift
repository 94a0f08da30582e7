import Postgres

extension Settings {
    /// Reads the connection of the server: `SALTERN_DATABASE_URL`.
    mutating func serverDatabase() -> PostgresConfiguration? {
        var database = database(
            requiredText("SALTERN_DATABASE_URL", "the address of PostgreSQL, as a URL or in keyword form"),
            "SALTERN_DATABASE_URL")
        let pooling = choice(
            "SALTERN_DATABASE_POOLING", ["session": SessionPooling.session, "transaction": .transaction],
            default: .session)
        database?.pooling = pooling
        return database
    }

    /// Reads the connection of the schema's owner: `SALTERN_OWNER_DATABASE_URL`, else the server's, unless a pooler
    /// exchanges its sessions.
    mutating func ownerDatabase() -> PostgresConfiguration? {
        if let text = text("SALTERN_OWNER_DATABASE_URL") { return database(text, "SALTERN_OWNER_DATABASE_URL") }
        let database = serverDatabase()
        if database?.pooling == .transaction {
            note(
                "SALTERN_OWNER_DATABASE_URL is needed with SALTERN_DATABASE_POOLING=transaction: it leads to PostgreSQL "
                    + "directly")
        }
        return database
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
