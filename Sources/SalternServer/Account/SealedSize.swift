internal import Postgres

/// How much a row with sealed bytes counts for.
enum SealedSize {
    /// The sealed bytes of a row of an alias: title and body together. The lengths of columns that are stored apart are
    /// known without reading them. 0 for a tombstone, and where there is no row.
    static func bytes(of alias: SQLFragment) -> SQLFragment {
        "(coalesce(octet_length(\(alias).body), 0) + coalesce(octet_length(\(alias).title), 0))::bigint"
    }
}
