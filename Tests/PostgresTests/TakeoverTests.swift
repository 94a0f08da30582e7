import EventLoop
import SalternTesting
import Testing

@testable import Postgres

/// A server that does not answer any more, and another one that does.
@Suite(.timeLimit(.minutes(60))) struct TakeoverTests {
    /// The server as a client names it in its place among several.
    private static func host(_ cluster: TemporaryCluster) -> Substring {
        cluster.url.split(separator: "@")[1].split(separator: "/")[0]
    }

    private static func configure(_ configuration: inout PostgresConfiguration, readConnections: Int = 2) {
        configuration.backOff = .milliseconds(10)...(.milliseconds(100))
        // Longer than a server takes to answer on a busy machine.
        configuration.takeoverPatience = .seconds(3)
        configuration.readConnections = readConnections
        configuration.commitConnections = 2
        configuration.leasedConnections = 2
    }

    @Test func `a frozen server is left for the one that has taken over, with its idle connections`() async throws {
        try await undisturbed {
            let events = EventRecorder()
            try await TemporaryCluster.with { first in
                try await TemporaryCluster.with { second in
                    let url = "postgresql://postgres@\(Self.host(first)),\(Self.host(second))/postgres"
                    try await withClient(
                        {
                            Self.configure(&$0)
                            $0.observer = { events.record($0) }
                        }, url: url
                    ) { client in
                        let before = try await client.execute(ServerStart())
                        // An idle lease, which the next transaction would be given.
                        _ = try await client.withConnection { try await $0.execute(ServerStart()) }
                        try await first.freeze()
                        let waiting = (0..<4).map { _ in
                            Task(executorPreference: client.loop) { try await client.execute(ServerStart()) }
                        }
                        var errors: [any Error] = []
                        for task in waiting {
                            do { _ = try await task.value } catch { errors.append(error) }
                        }
                        #expect(errors.count == 4)
                        #expect(errors.allSatisfy { ($0 as? PostgresError)?.isTransient == true }, "\(errors)")
                        let after = try await client.execute(ServerStart())
                        #expect(before != after)
                        #expect(try await client.withConnection { try await $0.execute(ServerStart()) } == after)
                        try await first.thaw()
                        for _ in 0..<20 { #expect(try await client.execute(ServerStart()) == after) }
                    }
                }
            }
            #expect(events.events.filter { $0 == .takenOver } == [.takenOver])
        }
    }

    @Test func `a slow server that is the only one is waited for`() async throws {
        try await undisturbed {
            let events = EventRecorder()
            try await TemporaryCluster.with { cluster in
                try await withClient(
                    {
                        Self.configure(&$0)
                        // There is no other server. A probe of a slow one has no consequence.
                        $0.takeoverPatience = .milliseconds(300)
                        $0.observer = { events.record($0) }
                    }, url: cluster.url
                ) { client in
                    let before = try await client.execute(ServerStart())
                    let slow = Task(executorPreference: client.loop) { try await client.execute(Sleep(seconds: 3)) }
                    try await cluster.freeze()
                    let waiting = Task(executorPreference: client.loop) { try await client.execute(ServerStart()) }
                    try await Task.sleep(for: .seconds(2))
                    try await cluster.thaw()
                    #expect(try await waiting.value == before)
                    _ = try await slow.value
                }
            }
            #expect(!events.events.contains(.takenOver))
        }
    }

    @Test func `a server that takes longer to be reached than it may be silent is found, and is not silent`()
        async throws
    {
        try await undisturbed {
            let events = EventRecorder()
            try await TemporaryCluster.with { first in
                try await TemporaryCluster.with { second in
                    // Each answer is on its way for less than a client's patience, and all of them for more.
                    let slowFirst = try CuttingProxy(to: first.directory + "/.s.PGSQL.5432", delay: .seconds(2))
                    defer { slowFirst.stop() }
                    let slowSecond = try CuttingProxy(to: second.directory + "/.s.PGSQL.5432", delay: .seconds(2))
                    defer { slowSecond.stop() }
                    let hosts = [slowFirst, slowSecond].map { $0.directory.replacing("/", with: "%2F") }
                    try await withClient(
                        {
                            Self.configure(&$0)
                            $0.takeoverPatience = .seconds(5)
                            $0.observer = { events.record($0) }
                            $0.onConnected = { _ = try await $0.execute(ServerStart()) }
                        }, url: "postgresql://postgres@\(hosts[0]),\(hosts[1])/postgres"
                    ) { client in
                        let before = try await client.execute(ServerStart())
                        #expect(try await client.withConnection { try await $0.execute(ServerStart()) } == before)
                        #expect(!events.events.contains(.takenOver))
                        try await first.freeze()
                        await #expect(throws: PostgresError.self) { try await client.execute(ServerStart()) }
                        #expect(try await client.execute(ServerStart()) != before)
                        try await first.thaw()
                    }
                }
            }
            #expect(events.events.filter { $0 == .takenOver } == [.takenOver])
        }
    }

    @Test func `a server that was looked at and is silent too is not waited for as long as a connection may take`()
        async throws
    {
        try await undisturbed {
            let silent = try SilentServer()
            defer { silent.stop() }
            let middle = silent.directory.replacing("/", with: "%2F")
            try await TemporaryCluster.with { first in
                try await TemporaryCluster.with { last in
                    let url = "postgresql://postgres@\(Self.host(first)),\(middle),\(Self.host(last))/postgres"
                    try await withClient(
                        {
                            Self.configure(&$0)
                            $0.connectTimeout = .seconds(120)
                            $0.silenceTimeout = .seconds(120)
                        }, url: url
                    ) { client in
                        let before = try await client.execute(ServerStart())
                        try await first.freeze()
                        let began = ContinuousClock.now
                        await #expect(throws: PostgresError.self) { try await client.execute(ServerStart()) }
                        #expect(began.duration(to: .now) < .seconds(60))
                        #expect(try await client.execute(ServerStart()) != before)
                        try await first.thaw()
                    }
                }
            }
        }
    }

    @Test func `openings that hang on the first server are begun again at the one that answers`() async throws {
        try await TemporaryCluster.with { first in
            try await TemporaryCluster.with { second in
                try await first.freeze()
                let url = "postgresql://postgres@\(Self.host(first)),\(Self.host(second))/postgres"
                try await withClient({ Self.configure(&$0) }, url: url) { client in
                    let found = try await client.execute(ServerStart())
                    #expect(try await client.withConnection { try await $0.execute(ServerStart()) } == found)
                }
                try await first.thaw()
            }
        }
    }
}

struct ServerStart: Statement {
    typealias Row = Timestamp
    static let sql: SQL<Self> = "SELECT pg_postmaster_start_time()"
    static let isReadOnly = true
}

/// The pool's part in it.
@Suite struct ScoutTests {
    private typealias Pool = PoolStateMachine<String>
    private let start = ContinuousClock.now
    private func text(_ actions: [Pool.Action]) -> [String] { PoolStateMachineTests.text(actions) }
    private func text(_ action: Pool.Action?) -> String? { action.map(PoolStateMachineTests.text) }

    @Test func `one scout at a time, closed when it has arrived, and pauses between them`() {
        var pool = PoolStateMachineTests.makeOpenPool(reads: 1, commits: 1, leased: 1, now: start)
        let id = ConnectionID(slot: 3, generation: 0)
        #expect(text(pool.probeOtherHost()) == "connect 3.0")
        #expect(pool.probeOtherHost() == nil)
        #expect(text(pool.connected(id, now: start)) == ["close 3.0"])
        #expect(pool.ended(id, now: start, jitter: 0).isEmpty)
        #expect(pool.probeOtherHost() == nil)
        #expect(pool.advance(to: start + .milliseconds(999)).isEmpty)
        #expect(pool.probeOtherHost() == nil)
        #expect(pool.advance(to: start + .seconds(1)).isEmpty, "nothing is opened unasked")
        #expect(text(pool.probeOtherHost()) == "connect 3.1")
        #expect(pool.ended(ConnectionID(slot: 3, generation: 1), now: start, jitter: 0).isEmpty)
        #expect(pool.advance(to: start + .milliseconds(200)).isEmpty)
        #expect(text(pool.probeOtherHost()) == "connect 3.2")
    }

    @Test func `a scout gives nobody a connection and keeps no pool from ending`() {
        var pool = PoolStateMachineTests.makeOpenPool(reads: 1, commits: 0, leased: 0, now: start)
        _ = pool.probeOtherHost()
        #expect(pool.acquireShared(.reads) == ConnectionID(slot: 0, generation: 0))
        #expect(text(pool.shutDown()) == ["close 1.0"])
        #expect(pool.ended(ConnectionID(slot: 1, generation: 0), now: start, jitter: 0).isEmpty)
        #expect(text(pool.releaseShared(ConnectionID(slot: 0, generation: 0))) == ["close 0.0"])
        #expect(text(pool.ended(ConnectionID(slot: 0, generation: 0), now: start, jitter: 0)) == ["finished"])
        #expect(pool.probeOtherHost() == nil)
    }

    @Test func `the server that is silent is looked at for a short time, and every fourth time for the whole`() {
        func short(_ count: Int, _ distances: ClosedRange<Int>) -> [Int] {
            distances.filter { ProbeTarget(preferred: 5, distance: $0).isShort(among: count) }
        }
        #expect(short(2, 1...16) == [2, 4, 6, 10, 12, 14])
        #expect(short(3, 1...24) == [3, 6, 9, 15, 18, 21])
        #expect(short(1, 1...8) == [], "nobody else is kept waiting")
        #expect(short(0, 1...8) == [], "it is not known yet how many there are")
        #expect(ProbeTarget(preferred: 5, distance: 3).serverIndex == 8)
    }

    @Test func `whoever waits for a lease does not wait for the next attempt when a server is known to answer`() throws
    {
        var pool = PoolStateMachineTests.makeOpenPool(reads: 1, commits: 0, leased: 1, now: start)
        let waiting = pool.waitForLease("ada", until: start + .seconds(60))
        let (_, actions) = try #require(waiting)
        #expect(text(actions) == ["connect 1.0"])
        #expect(pool.ended(ConnectionID(slot: 1, generation: 0), now: start, jitter: 1).isEmpty)
        #expect(text(pool.retryImmediately()) == ["connect 1.1"])
        #expect(pool.retryImmediately().isEmpty)
    }

    @Test func `who waits to connect does so at once when a server is known to answer`() {
        var pool = PoolStateMachineTests.makePool(reads: 2, commits: 0, leased: 1)
        _ = pool.start()
        for slot in 0..<2 { _ = pool.ended(ConnectionID(slot: slot, generation: 0), now: start, jitter: 1) }
        #expect(text(pool.retryImmediately()) == ["connect 0.1", "connect 1.1"])
        #expect(pool.retryImmediately().isEmpty)
        // And comes back as soon as after a first failure.
        for slot in 0..<2 { _ = pool.ended(ConnectionID(slot: slot, generation: 1), now: start, jitter: 1) }
        #expect(text(pool.advance(to: start + .milliseconds(100))) == ["connect 0.2", "connect 1.2"])
    }
}
