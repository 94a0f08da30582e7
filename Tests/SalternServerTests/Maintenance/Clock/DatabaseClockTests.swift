import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

@Suite struct DatabaseClockTests {
    /// A steady clock that stands until a test moves it.
    private final class Steady: Sendable {
        private let time = Atomic<Int64>(1_000_000_000)

        var reading: Int64 { time.load(ordering: .relaxed) }

        func advance(by microseconds: Int64) { time.add(microseconds, ordering: .relaxed) }
    }

    private static let noon = Timestamp(unixSeconds: 1_767_268_800)

    @Test func `the time is the database's, however wrong the node's own clock is`() async throws {
        try await TestApplication.with { app in
            for ahead in [300, -300, 0] as [Int64] {
                let node = ManualClock(SystemWallClock().now + .seconds(ahead))
                let clock = DatabaseClock(node: node)
                let (before, after) = try await app.run { [postgres = app.postgres] in
                    let before = try await postgres.execute(TellTime()).first
                    try await clock.compare(with: postgres)
                    let shown = clock.now
                    let after = try await postgres.execute(TellTime()).first
                    #expect(before.map { $0 <= shown } == true)
                    return (before, after)
                }
                // Whatever the way to the database takes is all that it can be wrong by.
                let roundTrip = try #require(after) - (try #require(before))
                #expect(clock.now - roundTrip <= SystemWallClock().now + .seconds(1))
                #expect(clock.isTrusted == (ahead == 0))
            }
        }
    }

    @Test func `between comparisons it counts on by the steady clock, whatever the node's wall clock does`() {
        let (steady, node) = (Steady(), ManualClock(Self.noon))
        let clock = DatabaseClock(node: node) { steady.reading }
        #expect(clock.now == Self.noon)
        #expect(clock.difference == nil)
        #expect(!clock.isTrusted)
        clock.set(to: Self.noon - .seconds(300), askedAt: clock.reading)
        #expect(clock.now == Self.noon - .seconds(300))
        #expect(clock.difference == .seconds(300))
        node.advance(by: .seconds(3_600))
        #expect(clock.now == Self.noon - .seconds(300))
        steady.advance(by: 2_000_000)
        #expect(clock.now == Self.noon - .seconds(298))
    }

    @Test func `what the way to the database may explain moves nothing, and half of it is allowed for`() {
        let (steady, node) = (Steady(), ManualClock(Self.noon))
        let clock = DatabaseClock(node: node) { steady.reading }
        clock.set(to: Self.noon, askedAt: clock.reading)
        let asked = clock.reading
        steady.advance(by: 400_000)
        // It may have answered at any moment of the 0.4 seconds.
        clock.set(to: Self.noon + .milliseconds(390), askedAt: asked)
        #expect(clock.now == Self.noon + .milliseconds(400))
        clock.set(to: Self.noon + .milliseconds(900), askedAt: asked)
        #expect(clock.now == Self.noon + .milliseconds(1_100))
    }

    @Test(arguments: [(30, true), (31, false), (-30, true), (-31, false)])
    func `nothing is removed beyond thirty seconds of difference`(seconds: Int64, isTrusted: Bool) {
        let node = ManualClock(Self.noon)
        let steady = Steady()
        let clock = DatabaseClock(node: node) { steady.reading }
        clock.set(to: Self.noon - .seconds(seconds), askedAt: clock.reading)
        #expect(clock.isTrusted == isTrusted)
    }

    @Test func `the operator is told once how well the clocks agree, and again when that changes`() async throws {
        try await TestApplication.with { app in
            let sink = CapturedLog()
            let node = ManualClock(SystemWallClock().now + .seconds(300))
            let clock = DatabaseClock(node: node)
            let watch = DatabaseWatch(
                clock: clock, failover: .asynchronous, log: .captured(by: sink))
            try await app.run { [postgres = app.postgres] in
                try await watch.look(postgres)
                try await watch.look(postgres)
            }
            #expect(sink.lines.count == 1)
            #expect(sink.lines.first?.contains("clock_far_off") == true)
            node.advance(by: .seconds(-275))
            try await app.run { [postgres = app.postgres] in try await watch.look(postgres) }
            #expect(sink.lines.last?.contains("clock_differs") == true)
        }
    }

    @Test func `agreement has three degrees`() {
        let degrees = [0, 1, 2, 30, 31].map { ClockAgreement(difference: .seconds($0)) }
        #expect(degrees == [.agrees, .agrees, .differs, .differs, .isFarOff])
        #expect(ClockAgreement(difference: .seconds(-31)) == .isFarOff)
    }
}

private struct TellTime: Statement {
    typealias Row = Timestamp
    static let sql: SQL<Self> = "SELECT clock_timestamp()"
}
