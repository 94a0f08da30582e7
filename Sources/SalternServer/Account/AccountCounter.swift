internal import Postgres

/// SQL for the two counters of an account: item changes and keyring revisions.
///
/// No number is issued twice, even after a database rollback: the installation's base then moves above all numbers that
/// the lost period can have issued. The statement that takes a number reads the base, so no node counts from memory.
enum AccountCounter {
    /// A lower bound: all further numbers are above it.
    static let base: SQLFragment = "(SELECT b.revision_base FROM saltern.installation b WHERE b.singleton)"

    /// The latest number of a counter, or the base if that is higher. Clients use it as the current position.
    static func head(_ counter: SQLFragment) -> SQLFragment { "greatest(\(counter), \(base))" }

    /// The value of a counter after `count` further numbers are taken.
    static func next(_ counter: SQLFragment, by count: SQLFragment = "1") -> SQLFragment {
        "\(head(counter)) + \(count)"
    }
}
