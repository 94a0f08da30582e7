internal import Postgres

/// Separates an account's events for one destination. Events of one lane are delivered one after another.
enum EventLane {
    /// The lane of ordered events.
    static let ordered = UUID.zero
    /// The lane of the latest change of the account's items. It replaces an earlier one.
    static let changes = UUID(high: 0, low: 1)
    /// The lane that counts dropped events of sessions. It has no events, and its last number is the count.
    static let dropped = UUID(high: 0, low: 2)

    /// The most events of sessions of an account that wait at a destination. Further ones are dropped.
    static let queueLimit = 32
    /// Beyond this number of waiting events of an account, only one receipt waits.
    static let receiptLimit = 32
    /// The most queues of an account at a destination: one for each event of a session, and one for each other lane.
    static let totalLimit = queueLimit + 3

    static let orderedSQL: SQLFragment = "'00000000-0000-0000-0000-000000000000'::uuid"
    static let changesSQL: SQLFragment = "'00000000-0000-0000-0000-000000000001'::uuid"
    static let droppedSQL: SQLFragment = "'00000000-0000-0000-0000-000000000002'::uuid"

    /// Returns an identifier that differs for each destination, so that destinations cannot compare identifiers. It
    /// depends on a random seed, because a cluster evaluates random functions once for all rows of a statement.
    /// - Parameters:
    ///   - seed: 16 random bytes as a UUID.
    ///   - parts: Further UUIDs that distinguish rows.
    static func identifier<Root, Context>(
        _ seed: SQLTemplate<Root, Context>, _ parts: SQLFragment
    ) -> SQLTemplate<Root, Context> {
        "substring(encode(sha256(uuid_send(\(seed)) || \(parts)), 'hex') FROM 1 FOR 32)::uuid"
    }
}

/// Names the queue of one account, destination and lane.
struct EventQueueKey: Sendable, Hashable {
    let accountID: AccountID
    let destinationID: DestinationID
    let lane: UUID

    /// Returns the condition that a row `alias` is in the queue.
    static func holds<Root>(
        _ alias: SQLFragment, _ path: any KeyPath<Root, EventQueueKey> & Sendable
    ) -> SQL<Root> {
        let key: SQL<EventQueueKey> = """
            \(alias).account_id = \(\.accountID) AND \(alias).destination_id = \(\.destinationID) AND \(alias).lane = \(\.lane)
            """
        return "\(key, of: path)"
    }
}
