import Testing

@testable import saltern_client

@Suite struct PeriodicTaskTests {
    private struct Failure: Error {}

    @Test func `it is due at once, and again when the period has passed`() async {
        let task = PeriodicTask(every: .seconds(86_400))
        let start = ContinuousClock.now
        var runs: [Int] = []
        for seconds in [0, 1, 86_399, 86_400, 86_401, 172_799, 172_800, 500_000] {
            await task.runIfDue(at: start + .seconds(seconds)) { runs.append(seconds) }
        }
        #expect(runs == [0, 86_400, 172_800, 500_000])
    }

    @Test func `what failed is due again, and the period begins when it succeeds`() async {
        let task = PeriodicTask(every: .seconds(3_600))
        let start = ContinuousClock.now
        var tries: [Int] = []
        for seconds in [0, 60, 120, 3_660, 3_720] {
            await task.runIfDue(at: start + .seconds(seconds)) {
                tries.append(seconds)
                if seconds < 120 { throw Failure() }
            }
        }
        #expect(tries == [0, 60, 120, 3_720])
    }
}
