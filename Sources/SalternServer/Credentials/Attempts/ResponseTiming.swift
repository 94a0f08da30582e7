/// Answers only at fixed moments after a request began, so that the time of an answer does not tell what was found on the
/// way to it: a row or none, in memory or on disk.
///
/// Doing the same work in each case is not enough: whether an index leads to a row shows by microseconds, and whether
/// that row has to be read from the disk by many more.
struct ResponseTiming: Sendable {
    /// From one moment to the next.
    let step: Duration

    /// Answers that every log-in needs.
    static let lookup = ResponseTiming(step: .milliseconds(5))
    /// Refusals.
    static let refusal = ResponseTiming(step: .milliseconds(20))

    /// Runs `body` and returns at the next moment, whatever came of it.
    func always<Result>(_ body: () async throws -> Result) async throws -> Result {
        let start = ContinuousClock.now
        let result = try await failures(since: start, body)
        await wait(since: start)
        return result
    }

    /// Runs `body`; an error is thrown at the next moment.
    func failures<Result>(_ body: () async throws -> Result) async throws -> Result {
        try await failures(since: .now, body)
    }

    private func failures<Result>(
        since start: ContinuousClock.Instant, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch {
            await wait(since: start)
            throw error
        }
    }

    private func wait(since start: ContinuousClock.Instant) async {
        let steps = ((ContinuousClock.now - start) / step).rounded(.down) + 1
        // Only a client that has gone is not waited for.
        try? await Task.sleep(until: start + step * steps, tolerance: .zero, clock: .continuous)
    }
}
