internal import HTTPCore
internal import Postgres
internal import Synchronization

/// `POST /v1/service-events/lease`: leases events to a service whose destination has no URL. No other request receives
/// them for 30 seconds. Unconfirmed events can be leased again after that time.
struct LeaseEvents: OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let pairwiseKey: PairwiseKey?
    private let outbox: Outbox

    /// The most events of a reply.
    static let countLimit = 100
    /// The longest wait for the first event, in seconds.
    static let waitLimit = 25
    static let deadline = Duration.seconds(60)
    /// The pause between two reads of the database.
    private static let pollInterval = Duration.seconds(1)
    /// The most reads in a row that find queues without events.
    private static let readLimit = 8

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        pairwiseKey = parts.installation.pairwiseKey
        outbox = parts.outbox
    }

    private struct Body {
        let destination: String
        let limit: Int64
        let wait: Int

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            destination = try members.required("destination") { try $0.text().string }
            limit = try members.optional("limit") { try Int64($0.integer(in: 1...LeaseEvents.countLimit)) } ?? 16
            wait = try members.optional("wait") { try $0.integer(in: 0...LeaseEvents.waitLimit) } ?? 0
        }
    }

    func respond(to request: Request) async throws -> Response {
        let service = try await ServiceAuthentication(database: database).service(of: request)
        let body = try Body(request)
        let destination = try await database.pulledDestination(body.destination, of: service)
        guard let pairwiseKey else { throw EventProblem.keyMissing }
        let events = try await events(of: destination, body, for: request)
        let writer = EventWriter(audience: destination.audience, key: pairwiseKey)
        return .json { json in
            json.object { json in
                json.array("events") { json in
                    for leased in events {
                        json.object { json in
                            json.member("id", leased.event.id.description)
                            writer.write(leased.event, of: leased.key.accountID, in: leased.key.lane, to: &json)
                        }
                    }
                }
            }
        }
    }

    private struct Leased: Sendable {
        let key: EventQueueKey
        let event: OutgoingEvent
    }

    /// Leases due events, or waits for the first one. The end of the node's waits ends it without events.
    private func events(of destination: Destination, _ body: Body, for request: Request) async throws -> [Leased] {
        let end = ContinuousClock.now + .seconds(body.wait)
        let events = try await lease(from: destination, limit: body.limit)
        guard events.isEmpty, body.wait > 0 else { return events }
        guard let wait = outbox.waits.begin(destination.id) else { throw EventProblem.tooManyWaits }
        while ContinuousClock.now < end, try await wait.pause(Self.pollInterval) {
            // The service may have been removed meanwhile.
            _ = try await ServiceAuthentication(database: database).service(of: request)
            let events = try await lease(from: destination, limit: body.limit)
            if !events.isEmpty { return events }
        }
        return []
    }

    /// Leases due events. Queues without events, whose events were parked or dropped, are settled on the way.
    private func lease(from destination: Destination, limit: Int64) async throws -> [Leased] {
        var events: [Leased] = []
        for _ in 0..<Self.readLimit {
            let due = try await database.execute(FindDueQueues(destinationID: destination.id, now: clock.now))
            try await lease(due, of: destination, limit: limit, to: &events)
            if !events.isEmpty || due.count < Int(FindDueQueues.limit) { break }
        }
        return events
    }

    private func lease(
        _ queues: [DueQueue], of destination: Destination, limit: Int64, to events: inout [Leased]
    ) async throws {
        let now = clock.now
        for due in queues {
            let left = min(limit - Int64(events.count), EventLease.eventLimit)
            if left <= 0 { break }
            let key = EventQueueKey(accountID: due.accountID, destinationID: destination.id, lane: due.lane)
            if due.lane == EventLane.dropped {
                try await outbox.takeDropped(key, database)
                continue
            }
            let lease = EventLease(key: key, id: .random())
            let (_, leased, found) = try await database.execute(
                LockQueue(key: key),
                LeaseQueue(lease: lease, seen: due.dueAt, until: now + EventLease.duration, limit: left),
                FindLeasedEvents(lease: lease, limit: left))
            guard let queue = leased.first else { continue }
            if found.isEmpty {
                _ = try await database.execute(
                    EndLease(lease: lease, deliveredNumber: queue.lastNumber, now: now), RemoveEndedQueue(key: key))
            }
            events += found.map { Leased(key: key, event: $0) }
        }
    }
}

extension PostgresClient {
    /// Returns the destination with a name that the service may fetch from.
    /// - Throws: ``Problem/notFound`` if its audience has no such destination without a URL.
    func pulledDestination(_ name: String, of service: Service) async throws -> Destination {
        let found = try await execute(FindDestinations()).first {
            $0.name.description == name && $0.audience == service.audience && $0.url == nil && !$0.isDisabled
        }
        guard let found else { throw Problem.notFound }
        return found
    }
}

/// The reason why no events are leased.
enum EventProblem: ProblemConvertible {
    case tooManyWaits
    /// No key of the master key file opens the pairwise key.
    case keyMissing

    var problem: Problem {
        switch self {
        case .tooManyWaits:
            Problem(
                .tooManyRequests, "too_many_waits", detail: "Too many requests wait for events of this destination.",
                limit: EventWaits.limit, responseFields: ["Retry-After": "5"])
        case .keyMissing: Problem.internalError
        }
    }
}

/// Limits the requests of a node that wait for events, because each reads the database once a second. Ends them when
/// the node stops.
final class EventWaits: Sendable {
    /// The most waits of one destination on one node.
    static let limit = 8
    /// A wait notices the end of all waits within this time.
    private static let step = Duration.milliseconds(100)

    private struct State {
        var counts: [DestinationID: Int] = [:]
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// A wait that ends with its last reference.
    final class Wait: Sendable {
        private let waits: EventWaits
        private let id: DestinationID

        fileprivate init(_ waits: EventWaits, _ id: DestinationID) {
            self.waits = waits
            self.id = id
        }

        deinit { waits.end(id) }

        /// Pauses. Returns false at once when the node ends all waits.
        /// - Throws: A `CancellationError` if the task is cancelled.
        func pause(_ duration: Duration) async throws -> Bool {
            let end = ContinuousClock.now + duration
            while !waits.hasEnded, case let left = end - .now, left > .zero {
                try await Task.sleep(for: min(left, EventWaits.step))
            }
            return !waits.hasEnded
        }
    }

    private var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Begins a wait. Returns nil if the destination has ``limit`` waits.
    func begin(_ id: DestinationID) -> Wait? {
        let isAllowed = state.withLock { state in
            guard state.counts[id, default: 0] < Self.limit else { return false }
            state.counts[id, default: 0] += 1
            return true
        }
        return isAllowed ? Wait(self, id) : nil
    }

    /// Ends all waits, and those that begin later.
    func endAll() { state.withLock { $0.hasEnded = true } }

    private func end(_ id: DestinationID) {
        state.withLock { state in
            state.counts[id, default: 1] -= 1
            if state.counts[id] == 0 { state.counts[id] = nil }
        }
    }
}
