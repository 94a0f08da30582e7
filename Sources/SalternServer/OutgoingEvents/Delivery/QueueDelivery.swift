internal import HTTPCore
internal import Postgres

/// Delivers from one queue. It leases the queue, posts its events one after another, and removes delivered ones. No
/// transaction is open during a post.
struct QueueDelivery: Sendable {
    let destination: Destination
    let url: String
    let secrets: [WebhookSecret]
    let writer: EventWriter
    let database: PostgresClient
    let client: any WebhookClient
    let clock: any WallClock

    /// The end of a delivery.
    enum Outcome: Sendable {
        /// Another node was first, or the node stops.
        case idle
        /// The queue had no event, and is no longer due.
        case settled
        case delivered
        case failed(WebhookOutcome)
        /// The receiver answered 410. The destination is disabled in the database.
        case gone
    }

    /// - Parameter counting: Receives the outcome of each attempt.
    /// - Throws: A `PostgresError`. The lease then expires.
    func run(_ due: DueQueue, counting: (WebhookOutcome) -> Void) async throws(PostgresError) -> Outcome {
        let key = EventQueueKey(accountID: due.accountID, destinationID: destination.id, lane: due.lane)
        let lease = EventLease(key: key, id: .random())
        let (_, leased, events) = try await database.execute(
            LockQueue(key: key),
            LeaseQueue(
                lease: lease, seen: due.dueAt, until: clock.now + EventLease.duration, limit: EventLease.eventLimit),
            FindLeasedEvents(lease: lease, limit: EventLease.eventLimit))
        guard let queue = leased.first else { return .idle }
        let begun = ContinuousClock.now
        var isWhole = events.count < Int(EventLease.eventLimit)
        var last: Int64 = 0
        for event in events {
            if ContinuousClock.now - begun > EventLease.turn {
                isWhole = false
                break
            }
            let outcome = await client.post(request(event, key))
            counting(outcome)
            switch outcome {
            case .status(200...299):
                // Locks the queue's row first, like its writers.
                let (held, _) = try await database.execute(
                    ExtendLease(lease: lease, until: clock.now + EventLease.duration),
                    RemoveDelivered(key: key, number: event.number))
                // Another node continues the delivery.
                if held.isEmpty { return .delivered }
                last = event.number
            case .status(410):
                // In one transaction: the queue is due again, but queues of a disabled destination are not read.
                _ = try await database.execute(
                    DisableDestination(id: destination.id, now: clock.now),
                    DelayQueue(lease: lease, attempts: queue.attempts, dueAt: clock.now))
                return .gone
            case .failed(.cancelled):
                // Not a failure of the event.
                _ = try await database.execute(DelayQueue(lease: lease, attempts: queue.attempts, dueAt: clock.now))
                return .idle
            case .status, .failed:
                let isFirst = event.number == events.first?.number
                try await fail(event, lease, attempts: isFirst ? queue.attempts + 1 : 1)
                return .failed(outcome)
            }
        }
        // The queue may have further events after a full batch, or after the time limit of a lease.
        _ = try await database.execute(
            EndLease(lease: lease, deliveredNumber: isWhole ? max(queue.lastNumber, last) : last, now: clock.now),
            RemoveEndedQueue(key: key))
        return events.isEmpty ? .settled : .delivered
    }

    private func fail(_ event: OutgoingEvent, _ lease: EventLease, attempts: Int32) async throws(PostgresError) {
        let now = clock.now
        if now - event.waitingSince >= RetrySchedule.lifetime || attempts >= RetrySchedule.attemptLimit {
            _ = try await database.execute(
                DelayQueue(lease: lease, attempts: 0, dueAt: now),
                ParkEvent(key: lease.key, number: event.number, now: now))
        } else {
            let delay = RetrySchedule.delay(after: Int(attempts), jitter: .random(in: 0...1))
            _ = try await database.execute(DelayQueue(lease: lease, attempts: attempts, dueAt: now + delay))
        }
    }

    private func request(_ event: OutgoingEvent, _ key: EventQueueKey) -> WebhookRequest {
        let body = writer.body(event, of: key.accountID, in: key.lane)
        let fields = WebhookSignature.fields(
            id: event.id.description, at: clock.now.unixSeconds, body: body, secrets: secrets)
        return WebhookRequest(
            url: url, fields: [("Content-Type", "application/json"), ("User-Agent", "saltern")] + fields, body: body)
    }
}

/// The delays between attempts to deliver an event.
enum RetrySchedule {
    /// The delay after the first failure. Each further delay is three times as long.
    static let first = Duration.seconds(10)
    static let longest = Duration.seconds(6 * 3_600)
    /// An event of this age is parked at its next failure.
    static let lifetime = Duration.seconds(3 * 86_400)
    /// After this number of failures without a success an event is parked at any age, because a wrong clock can have
    /// set the begin of its age. Attempts of a whole lifetime are fewer.
    static let attemptLimit: Int32 = 30
    /// A parked event is kept for this long.
    static let parkedRetention = Duration.seconds(3 * 86_400)

    /// Returns the latest due time that a delay or a lease can have set. A later one was set while the database's clock
    /// was ahead, and such a queue is due at once.
    static func latestDue(at now: Timestamp) -> Timestamp { now + longest + EventLease.duration }

    /// Returns the delay after a number of failures without a success.
    /// - Parameters:
    ///   - failures: At least 1.
    ///   - jitter: 0 to 1. Shortens the delay by up to a tenth, so that queues do not become due together.
    static func delay(after failures: Int, jitter: Double) -> Duration {
        var delay = first
        for _ in 1..<max(1, min(failures, 32)) where delay < longest { delay *= 3 }
        return min(delay, longest) * (1 - 0.1 * jitter)
    }
}
