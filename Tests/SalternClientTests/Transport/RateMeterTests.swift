import SalternTesting
import Testing

@testable import SalternClient

@Suite struct RateMeterTests {
    private let start = ContinuousClock.now

    @Test(arguments: PropertyTests.seeds)
    func `what waits for the meter stays within the rate, from any moment to any other`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let rate = Int.random(in: 1...1_000_000, using: &random)
        var meter = RateMeter(bytesPerSecond: rate)
        var now = start
        var moved: [(time: ContinuousClock.Instant, byteCount: Int)] = []
        for _ in 0..<60 {
            now += .microseconds(Int.random(in: 0...300_000, using: &random))
            if Bool.random(using: &random) { now += meter.delay(at: now) }
            guard meter.delay(at: now) == .zero else { continue }
            let byteCount = Int.random(in: 0...(16 << 10), using: &random)
            meter.note(byteCount, at: now)
            moved.append((now, byteCount))
        }
        #expect(!moved.isEmpty)
        for first in moved.indices {
            var sum = 0
            for last in first..<moved.count {
                let seconds = moved[first].time.duration(to: moved[last].time) / .seconds(1)
                #expect(Double(sum) <= seconds * Double(rate) + 1)
                sum += moved[last].byteCount
            }
        }
    }

    @Test func `an idle time is not made up for`() {
        var meter = RateMeter(bytesPerSecond: 1_000)
        meter.note(500, at: start)
        #expect(meter.delay(at: start) == .milliseconds(500))
        #expect(meter.delay(at: start + .seconds(60)) == .zero)
        meter.note(500, at: start + .seconds(60))
        #expect(meter.delay(at: start + .seconds(60)) == .milliseconds(500))
    }
}
