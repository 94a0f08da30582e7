import Testing

@testable import SalternClient

@Suite struct EventPaceTests {
    @Test func `a burst has its effect at once, and a flood one event in each interval`() {
        let start = ContinuousClock.now
        var pace = EventPace(at: start)
        for _ in 0..<EventPace.burst { #expect(pace.wait(at: start) == .zero) }
        var now = start
        for _ in 0..<100 {
            let wait = pace.wait(at: now)
            #expect(wait == EventPace.interval)
            now = now.advanced(by: wait)
        }
        // A quiet time makes room for a burst again, and for no more.
        now = now.advanced(by: .seconds(3_600))
        for _ in 0..<EventPace.burst { #expect(pace.wait(at: now) == .zero) }
        #expect(pace.wait(at: now) == EventPace.interval)
    }
}
