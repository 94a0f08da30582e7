import Foundation
import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

/// A receiver in the place of the network: notes what it gets, and answers as a test wishes.
final class FakeReceiver: WebhookClient {
    struct Received: Sendable, Equatable {
        let url: String
        let id: String
        let type: String
        let sub: String
        let number: Int64?
        let outcome: WebhookOutcome
    }

    private struct State {
        var received: [Received] = []
        var underWay: [String: Int] = [:]
        var isOverlapping = false
    }

    private let state = Mutex(State())
    private let answer: @Sendable (Received) async -> WebhookOutcome

    init(_ answer: @escaping @Sendable (Received) async -> WebhookOutcome = { _ in .status(204) }) {
        self.answer = answer
    }

    /// The attempts in the order of their ends.
    var received: [Received] { state.withLock { $0.received } }
    /// Those that were answered with a success.
    var delivered: [Received] { received.filter { if case .status(200...299) = $0.outcome { true } else { false } } }
    /// Whether two attempts for one account and destination were under way at once.
    var isOverlapping: Bool { state.withLock { $0.isOverlapping } }

    func post(_ request: WebhookRequest) async -> WebhookOutcome {
        let json = (try? JSONSerialization.jsonObject(with: Data(request.body))) as? [String: Any]
        let data = json?["data"] as? [String: Any]
        func received(_ outcome: WebhookOutcome) -> Received {
            Received(
                url: request.url, id: request.fields.first { $0.name == "webhook-id" }?.value ?? "",
                type: json?["type"] as? String ?? "", sub: data?["sub"] as? String ?? "",
                number: (data?["number"] as? NSNumber)?.int64Value, outcome: outcome)
        }
        let lane = received(.status(0)).number == nil ? nil : "\(request.url) \(received(.status(0)).sub)"
        if let lane {
            state.withLock { state in
                state.underWay[lane, default: 0] += 1
                if state.underWay[lane] != 1 { state.isOverlapping = true }
            }
        }
        let outcome = await answer(received(.status(0)))
        state.withLock { state in
            if let lane { state.underWay[lane, default: 1] -= 1 }
            state.received.append(received(outcome))
        }
        return outcome
    }
}

extension TestApplication {
    /// Creates a destination; without a URL services fetch its events.
    @discardableResult
    func createDestination(
        _ name: String, audience: String = "billing", url: String? = "https://receiver.example/hook",
        _ kinds: [EventKind] = EventKind.allCases
    ) async throws -> DestinationID {
        let (name, audience) = (DestinationName(name), AudienceName(audience))
        guard let name, let audience else { preconditionFailure("the names of tests are valid") }
        let terms = DestinationAdministration.Terms(
            name, audience: audience, url: url.flatMap { DestinationURL($0) }, kinds: kinds)
        let (signature, masterKey) = (InviteTests.signature(self), configuration.masterKey)
        return try await asOwner { database in
            let administration = DestinationAdministration(database: database)
            try await administration.create(terms, sealingWith: masterKey, by: signature)
            return try await administration.destination(name).id
        }
    }

    /// Everything that waits or is parked.
    func undelivered(
        _ selection: EventAdministration.Selection = EventAdministration.Selection()
    ) async throws -> [EventAdministration.Entry] {
        try await asOwner {
            try await EventAdministration(database: $0).events(selection, limit: 10_000)
        }
    }

    /// Reads the destinations, as a node does every few seconds.
    func readDestinations() async throws { outbox.use(try await execute(FindDestinations())) }

    /// Runs a node's delivery while `body` does.
    func delivering<Result: Sendable>(
        to receiver: FakeReceiver, changesEvery interval: Duration = .milliseconds(20), nodes: Int = 1,
        breakerPause: Duration = CircuitBreaker.firstPause,
        _ body: @Sendable () async throws -> Result
    ) async throws -> Result {
        let installation = try await run { [self] in
            try await Installation.load(configuration: configuration, database: postgres, clock: clock)
        }
        let tasks = (0..<nodes).map { _ in
            Task { [self] in
                try await run { [self] in
                    var delivery = EventDelivery(
                        outbox, database: postgres, installation: installation, client: receiver, clock: clock,
                        masterKey: { [configuration] in configuration.masterKey }, counters: DeliveryCounters(),
                        log: Log(minimumLevel: .error, sink: log) { UTCTimestamp(microsecondsSinceEpoch: 0) })
                    delivery.reload = .milliseconds(20)
                    delivery.change = interval
                    delivery.poll = .milliseconds(10)
                    delivery.breakerPause = breakerPause
                    await delivery.run()
                }
            }
        }
        let result: Result
        do { result = try await body() } catch {
            for task in tasks { task.cancel() }
            for task in tasks { try? await task.value }
            throw error
        }
        for task in tasks { task.cancel() }
        for task in tasks { try await task.value }
        return result
    }

    /// Waits until a condition is true.
    func wait(_ condition: () async throws -> Bool) async throws {
        try await eventually(every: .milliseconds(20), condition)
    }
}
