import EventLoop
import Foundation
import SalternTesting
import Testing

@testable import Postgres

/// Groups of two nodes with PostgreSQL while everything goes wrong that can, at random.
/// Each test lasts for ``PropertyTests/duration``.
@Suite(.timeLimit(.minutes(60))) struct GroupPropertyTests {
    private static let configure: @Sendable (inout PostgresConfiguration) -> Void = { configuration in
        configuration.readConnections = 0
        configuration.commitConnections = 2
        configuration.leasedConnections = 3
        configuration.backOff = .milliseconds(5)...(.milliseconds(20))
    }

    private static let migrations = [Migration(version: 1, name: "test", sql: GroupLedger.schema)]

    /// Makes entries for twenty rounds and until the time is up, forty at a time: half of them of few rows, so that the same one comes many
    /// times in a group and the nodes meet, and one in eight with a fault of its own.
    private static func enter(
        _ ledger: GroupLedger, _ client: PostgresClient, losesConnections: Bool, until end: ContinuousClock.Instant
    ) async {
        // On a busy machine the time may be up before any requests share a transaction.
        for round in 0... {
            guard round < 20 || ContinuousClock.now < end else { return }
            let tasks = (0..<40).map { _ in
                let id = Int32.random(in: 0..<(Bool.random() ? 4 : 400))
                let fault = Int.random(in: 0..<8) == 0 ? GroupLedger.Fault.allCases.randomElement() : nil
                return Task(executorPreference: client.loop) {
                    await ledger.enter(client, id: id, fault ?? .none, losesConnections: losesConnections)
                }
            }
            for task in tasks where Int.random(in: 0..<20) == 0 {
                Task(executorPreference: client.loop) {
                    try? await Task.sleep(for: .microseconds(.random(in: 0..<4_000)))
                    task.cancel()
                }
            }
            for task in tasks { await task.value }
        }
    }

    /// Whose row somebody holds for a while, with psql.
    private static func hold(_ url: String, until end: ContinuousClock.Instant) async throws {
        try await withClient(url: url) { client in
            while ContinuousClock.now < end {
                _ = try await client.withTransaction { holder in
                    _ = try await holder.execute(GroupLedger.LockTally(id: .random(in: 0..<400)))
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
        }
    }

    @Test func `errors at random places change nobody's answer but the offender's`() async throws {
        try await TemporaryDatabase.with(migrations: Self.migrations) { database in
            let url = database.administratorURL
            let ledger = GroupLedger()
            let end = ContinuousClock.now + PropertyTests.duration
            let node: @Sendable (PostgresClient) async throws -> Void = {
                await Self.enter(ledger, $0, losesConnections: false, until: end)
            }
            async let first: Void = withClient(Self.configure, url: url, node)
            async let second: Void = withClient(Self.configure, url: url, node)
            async let holder: Void = Self.hold(url, until: end)
            _ = try await (first, second, holder)
            try await withClient(url: url) { try await ledger.check($0) }
        }
    }

    @Test func `connections lost at random places leave nobody with a wrong answer`() async throws {
        try await withProxy { database, proxy in
            let url = proxy.url(of: database.administratorURL)
            let ledger = GroupLedger()
            let end = ContinuousClock.now + PropertyTests.duration
            let node: @Sendable (PostgresClient) async throws -> Void = {
                await Self.enter(ledger, $0, losesConnections: true, until: end)
            }
            async let first: Void = withClient(Self.configure, url: url, node)
            async let second: Void = withClient(Self.configure, url: url, node)
            while ContinuousClock.now < end {
                proxy.cut(Bool.random() ? .toServer : .toClient, after: .random(in: 0..<20_000))
                try await Task.sleep(for: .milliseconds(.random(in: 5..<60)))
            }
            proxy.disarm()
            _ = try await (first, second)
            try await withClient(url: database.administratorURL) { try await ledger.check($0) }
        }
    }

    @Test(arguments: CuttingProxy.Direction.allCases)
    func `wherever a group's connection is cut, what was told to be done is there`(
        direction: CuttingProxy.Direction
    ) async throws {
        try await withProxy { database, proxy in
            let configure: @Sendable (inout PostgresConfiguration) -> Void = { configuration in
                Self.configure(&configuration)
                configuration.commitConnections = 1
            }
            let ledger = GroupLedger()
            let cuts = try await withClient(configure, url: proxy.url(of: database.administratorURL)) { client in
                var cuts = 0
                for point in 0... {
                    try await eventually { client.isReady }
                    // An odd distance, so that it falls on every part of a message in time.
                    proxy.cut(direction, after: point * 67)
                    let tasks = (0..<17).map { number in
                        Task(executorPreference: client.loop) {
                            let id = Int32(number % 12 * 10)
                            await ledger.enter(client, id: id, .none, losesConnections: true)
                        }
                    }
                    for task in tasks { await task.value }
                    if proxy.disarm() { break }
                    cuts += 1
                }
                return cuts
            }
            #expect(cuts > 10)
            try await withClient(url: database.administratorURL) { try await ledger.check($0) }
        }
    }

    private func withProxy(
        _ body: @Sendable (TemporaryDatabase, CuttingProxy) async throws -> Void
    ) async throws {
        try await TemporaryDatabase.with(migrations: Self.migrations) { try await $0.withProxy(body) }
    }
}
