public import Postgres

/// The error of a database during an unfinished restore, in which sessions may still be live. Its mark is the schema
/// `saltern_restoring`, which `saltern restore` creates first and removes last.
public struct UnfinishedRestore: Error, CustomStringConvertible {
    /// The condition that the mark of a restore exists.
    public static let isMarked: SQLFragment = "pg_catalog.to_regnamespace('saltern_restoring') IS NOT NULL"

    public init() {}

    public var description: String {
        "a restore of the database is not finished; if none is running: without a schema saltern, restore again, "
            + "otherwise finish it with `saltern migrate up` and `saltern restored --end-sessions`, or remove that schema and "
            + "restore again"
    }
}
