internal import Postgres

/// SQL for the size of rows with sealed bytes.
enum SealedSize {
    /// The sealed bytes of a row of an alias: title and body together. PostgreSQL stores the lengths of such columns
    /// apart and does not read the values. 0 for a tombstone or a missing row.
    static func bytes(of alias: SQLFragment) -> SQLFragment {
        "(coalesce(octet_length(\(alias).body), 0) + coalesce(octet_length(\(alias).title), 0))::bigint"
    }
}
