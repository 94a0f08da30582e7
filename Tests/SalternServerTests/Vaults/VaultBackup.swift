import Postgres
import SalternTesting

/// A copy of the rows of vaults, as a backup has them.
enum VaultBackup {
    private static let tables = [
        "vaults", "vault_members", "vault_entries", "vault_boxes", "vault_generations", "vault_seals", "memberships",
        "vault_invitations", "vault_items", "vault_deleted_contents", "vault_replaced_contents",
    ]

    /// Copies the rows.
    static func make(_ app: TestApplication) async throws {
        try await app.administer(
            "CREATE SCHEMA backup;" + tables.map { "CREATE TABLE backup.\($0) AS TABLE saltern.\($0);" }.joined())
    }

    /// Puts the copied rows in the place of the present ones, and moves the base as all means of restoring do.
    static func restore(_ app: TestApplication) async throws {
        try await app.administer(
            tables.map { "DELETE FROM saltern.\($0); INSERT INTO saltern.\($0) SELECT * FROM backup.\($0);" }.joined())
        try await moveBase(app)
    }

    /// Moves the base 5 seconds before the present time, and 5 seconds after the last requests.
    static func moveBase(_ app: TestApplication) async throws {
        app.clock.advance(by: .seconds(10))
        try await app.administer(
            """
            UPDATE saltern.installation SET revision_base = revision_base + 1000000,
                base_moved_at = to_timestamp(\(app.clock.now.unixMicroseconds / 1_000_000 - 5));
            """)
    }
}
