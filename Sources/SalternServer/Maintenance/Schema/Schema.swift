public import Postgres

/// The schema that this program works with.
public enum Schema {
    /// The migrations in order, as the files of `Migrations/` are at the time of building.
    public static var migrations: [Migration] {
        [
            Migration(
                version: 1, name: "accounts_sessions_items",
                sql: String(decoding: PackageResources._001_accounts_sessions_items_sql, as: UTF8.self)),
            Migration(
                version: 2, name: "sync",
                sql: String(decoding: PackageResources._002_sync_sql, as: UTF8.self)),
            Migration(
                version: 3, name: "account_life",
                sql: String(decoding: PackageResources._003_account_life_sql, as: UTF8.self)),
            Migration(
                version: 4, name: "shares",
                sql: String(decoding: PackageResources._004_shares_sql, as: UTF8.self)),
            Migration(
                version: 5, name: "guessing",
                sql: String(decoding: PackageResources._005_guessing_sql, as: UTF8.self)),
            Migration(
                version: 6, name: "time_that_went_back",
                sql: String(decoding: PackageResources._006_time_that_went_back_sql, as: UTF8.self)),
            Migration(
                version: 7, name: "bounds",
                sql: String(decoding: PackageResources._007_bounds_sql, as: UTF8.self)),
            Migration(
                version: 8, name: "generation_before",
                sql: String(decoding: PackageResources._008_generation_before_sql, as: UTF8.self)),
        ]
    }

    /// The version that the migrations lead to.
    static let version = migrations.count
}
