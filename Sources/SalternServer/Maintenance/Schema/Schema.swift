public import Postgres

/// The schema of this program.
public enum Schema {
    /// The migrations in order, from the files of `Migrations/` at build time.
    public static let migrations: [Migration] = {
        let files: [(name: String, sql: [UInt8])] = [
            ("accounts_sessions_items", PackageResources._001_accounts_sessions_items_sql),
            ("sync", PackageResources._002_sync_sql),
            ("account_life", PackageResources._003_account_life_sql),
            ("shares", PackageResources._004_shares_sql),
            ("guessing", PackageResources._005_guessing_sql),
            ("time_that_went_back", PackageResources._006_time_that_went_back_sql),
            ("bounds", PackageResources._007_bounds_sql),
            ("generation_before", PackageResources._008_generation_before_sql),
            ("hot_statements", PackageResources._009_hot_statements_sql),
            ("writer", PackageResources._010_writer_sql),
            ("vacuum", PackageResources._011_vacuum_sql),
            ("hot_checks", PackageResources._012_hot_checks_sql),
            ("server_rights", PackageResources._013_server_rights_sql),
            ("kept_keyrings", PackageResources._014_kept_keyrings_sql),
            ("versions", PackageResources._015_versions_sql),
            ("audiences", PackageResources._016_audiences_sql),
            ("outgoing_events", PackageResources._017_outgoing_events_sql),
            ("passkeys", PackageResources._018_passkeys_sql),
            ("vacuum_of_kept_rows", PackageResources._019_vacuum_of_kept_rows_sql),
            ("sessions_of_passkeys", PackageResources._020_sessions_of_passkeys_sql),
            ("cluster_registration", PackageResources._021_cluster_registration_sql),
            ("vaults", PackageResources._022_vaults_sql),
        ]
        return files.enumerated().map { index, file in
            Migration(version: index + 1, name: file.name, sql: String(decoding: file.sql, as: UTF8.self))
        }
    }()

    /// The parts of the schema after all migrations.
    public static var parts: SchemaParts { SchemaParts(String(decoding: PackageResources.parts_txt, as: UTF8.self)) }

    /// The role with a server's rights. Each server's role is a member of it.
    public static let serverRole = "saltern_server"

    /// The compatibility of a database's schema with this program.
    enum Fit: Sendable {
        /// The program works with it.
        case fits
        case older
        case newer
    }

    /// Returns the compatibility of a schema whose newest migration is `version`.
    ///
    /// - Parameter oldestProgram: The oldest program, by its number of migrations, that all newer migrations tolerate.
    static func fit(version: Int, oldestProgram: Int) -> Fit {
        if version < needed { return .older }
        return version <= known || oldestProgram <= known ? .fits : .newer
    }

    /// The number of migrations in this program, and the number that it requires.
    static let known = migrations.count
    private static let needed = migrations.last { !$0.isFinishing }?.version ?? 0
}
