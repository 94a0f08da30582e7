import SalternTesting
import Testing

@testable import SalternServer

@Suite struct RetryScheduleTests {
    @Test func `delays grow threefold from ten seconds to six hours`() {
        let delays = (1...9).map { Int((RetrySchedule.delay(after: $0, jitter: 0) / .seconds(1)).rounded()) }
        #expect(delays == [10, 30, 90, 270, 810, 2_430, 7_290, 21_600, 21_600])
        #expect(RetrySchedule.delay(after: .max, jitter: 0) == .seconds(21_600))
        #expect(RetrySchedule.delay(after: 1, jitter: 1) == .seconds(9))
    }

    @Test func `an event is attempted about 18 times before it is parked`() {
        var (age, attempts) = (Duration.zero, 1)
        while age < RetrySchedule.lifetime {
            age += RetrySchedule.delay(after: attempts, jitter: 0)
            attempts += 1
        }
        #expect((15...20).contains(attempts))
    }
}

@Suite struct CircuitBreakerTests {
    private let start = ContinuousClock.now

    @Test func `five failures in a row open it, and one attempt at a time tests it`() {
        var breaker = CircuitBreaker()
        for _ in 1...4 {
            breaker.begin()
            breaker.fail(start)
        }
        #expect(breaker.allowance(start, limit: 8) == 8)
        breaker.fail(start)
        #expect(breaker.isOpen)
        #expect(breaker.allowance(start + .seconds(9), limit: 8) == 0)
        #expect(breaker.allowance(start + .seconds(10), limit: 8) == 1)
        breaker.begin()
        #expect(breaker.allowance(start + .seconds(10), limit: 8) == 0)
        breaker.fail(start + .seconds(10))
        #expect(breaker.allowance(start + .seconds(29), limit: 8) == 0)
        #expect(breaker.allowance(start + .seconds(30), limit: 8) == 1)
        breaker.begin()
        breaker.succeed()
        #expect(breaker == CircuitBreaker())
    }

    @Test func `its first pause can be set, and doubles up to the longest`() {
        var breaker = CircuitBreaker(pause: .milliseconds(20))
        for _ in 1...5 { breaker.fail(start) }
        #expect(breaker.allowance(start + .milliseconds(19), limit: 8) == 0)
        #expect(breaker.allowance(start + .milliseconds(20), limit: 8) == 1)
        breaker.fail(start + .milliseconds(20))
        #expect(breaker.allowance(start + .milliseconds(59), limit: 8) == 0)
        #expect(breaker.allowance(start + .milliseconds(60), limit: 8) == 1)
    }

    @Test func `a success in between starts the count again`() {
        var breaker = CircuitBreaker()
        for _ in 1...100 {
            for _ in 1...4 { breaker.fail(start) }
            #expect(!breaker.isOpen)
            breaker.succeed()
        }
    }

    @Test func `attempts that began before it opened lengthen nothing`() {
        var breaker = CircuitBreaker()
        for _ in 1...40 { breaker.fail(start) }
        #expect(breaker.allowance(start + .seconds(10), limit: 8) == 1)
    }

    @Test func `a test that was not made leaves it open`() {
        var breaker = CircuitBreaker()
        for _ in 1...5 { breaker.fail(start) }
        breaker.begin()
        breaker.abandon(start + .seconds(20))
        #expect(breaker.isOpen && breaker.allowance(start + .seconds(20), limit: 8) == 1)
    }

    @Test(arguments: PropertyTests.seeds)
    func `it never stays closed to a receiver for longer than five minutes`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var (breaker, now, active) = (CircuitBreaker(), start, 0)
        for _ in 1...200 {
            now += .milliseconds(Int.random(in: 0...60_000, using: &random))
            if breaker.allowance(now, limit: 8) > 0 {
                breaker.begin()
                active += 1
            }
            if active > 0, random.chance(0.7) {
                active -= 1
                switch Int.random(in: 0...4, using: &random) {
                case 0: breaker.succeed()
                case 1: breaker.abandon(now)
                default: breaker.fail(now)
                }
            }
            guard active == 0 else { continue }
            #expect(breaker.allowance(now + CircuitBreaker.longestPause, limit: 8) > 0)
        }
    }
}
