internal import Postgres

/// SQL for the counters of an account: of the changes of its items, and of its keyring.
///
/// A number that was given out is never given out again, also when the database was restored to a time before: then the
/// installation's base has been moved above whatever the lost time can have counted to. It is read in the very statement
/// that takes a number, so that no node can count on from what it remembers.
enum AccountCounter {
    /// The number that all further ones are above.
    static let base: SQLFragment = "(SELECT b.revision_base FROM saltern.installation b WHERE b.singleton)"

    /// The highest number of a counter, or the base when that is higher: what clients hold for "so far".
    static func head(_ counter: SQLFragment) -> SQLFragment { "greatest(\(counter), \(base))" }

    /// The number that a counter has after `count` further ones were taken.
    static func next(_ counter: SQLFragment, by count: SQLFragment = "1") -> SQLFragment {
        "\(head(counter)) + \(count)"
    }
}
