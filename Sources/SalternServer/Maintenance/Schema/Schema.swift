public import Postgres

/// The schema that this program works with.
public enum Schema {
    /// The migrations in order, as the files of `Migrations/` are at the time of building.
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
        ]
        return files.enumerated().map { index, file in
            Migration(version: index + 1, name: file.name, sql: String(decoding: file.sql, as: UTF8.self))
        }
    }()

    /// What all of them together make.
    public static var parts: SchemaParts { SchemaParts(String(decoding: PackageResources.parts_txt, as: UTF8.self)) }

    /// Who has the rights of a server; every server's role is a member.
    public static let serverRole = "saltern_server"

    /// What the schema of a database is to this program.
    enum Fit: Sendable {
        /// It works with it.
        case fits
        case older
        case newer
    }

    /// What a schema is whose newest migration is `version`.
    /// - Parameter oldestProgram: What a program has to know at least, of all migrations that this one does not know.
    static func fit(version: Int, oldestProgram: Int) -> Fit {
        if version < needed { return .older }
        return version <= known || oldestProgram <= known ? .fits : .newer
    }

    /// How many migrations this program knows, and how many it cannot do without.
    static let known = migrations.count
    private static let needed = migrations.last { !$0.isFinishing }?.version ?? 0
}
