public import Postgres

/// The database is being restored, or somebody ended that before everything was done that belongs to it: sessions may be live
/// that are to end. Told by a mark in the database, the schema `saltern_restoring`, which `saltern restore` makes first and
/// removes last.
public struct UnfinishedRestore: Error, CustomStringConvertible {
    /// Whether there is a restore's mark, which begins each and is removed by what ends it.
    public static let isMarked: SQLFragment = "pg_catalog.to_regnamespace('saltern_restoring') IS NOT NULL"

    public init() {}

    public var description: String {
        "a restore of the database is not finished; if none is under way: where there is no schema saltern, restore again, "
            + "else finish it with `saltern migrate up` and `saltern restored --end-sessions`, or remove that schema and "
            + "restore again"
    }
}
