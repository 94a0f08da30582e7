/// Delays results to fixed intervals after the start of a request. Response times then do not reveal if a row exists,
/// or if it was in memory or on disk.
///
/// Equal work in each case is not sufficient. An index hit costs measurable microseconds, and a read from disk many
/// more.
struct ResponseTiming: Sendable {
    /// The interval.
    let step: Duration

    /// For replies that every log-in needs.
    static let lookup = ResponseTiming(step: .milliseconds(5))
    /// For rejections.
    static let refusal = ResponseTiming(step: .milliseconds(20))

    /// Runs `body` and returns or throws at the next interval.
    func always<Result>(_ body: () async throws -> Result) async throws -> Result {
        let start = ContinuousClock.now
        let result = try await failures(since: start, body)
        await wait(since: start)
        return result
    }

    /// Runs `body`, and throws its errors at the next interval.
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
        // The wait is cut short only if the client has disconnected.
        try? await Task.sleep(until: start + step * steps, tolerance: .zero, clock: .continuous)
    }
}
