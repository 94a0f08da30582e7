/// Sends again what may be sent again, after waits that double and differ from one client to another. A server that asks to be
/// left alone for longer than the longest wait is not asked again: the error has the time that it asked for.
///
/// Only for what the API promises to be repeatable ("Retries" in docs/api-guide.md): its reply may have been lost.
public struct Retries: Sendable {
    /// The most times that a request is sent, the first time included.
    public var attempts: Int
    /// The first and the longest wait.
    public var waits: ClosedRange<Duration>

    /// Creates a rule.
    /// - Parameters:
    ///   - attempts: How often a request is sent at most, the first time included.
    ///   - waits: The first wait, and the longest one. A wait doubles each time.
    public init(attempts: Int = 5, waits: ClosedRange<Duration> = .seconds(1)...(.seconds(60))) {
        self.attempts = attempts
        self.waits = waits
    }

    /// Returns the wait after the `failures`-th failure in a row: the time that the server asked for, else half of the doubled
    /// wait and a random part of the other half.
    /// - Parameter chance: From 0 to 1.
    public func wait(after failures: Int, asked: Duration?, chance: Double) -> Duration {
        let doubled = min(waits.lowerBound * (1 << min(max(failures - 1, 0), 16)), waits.upperBound)
        let own = doubled * (0.5 + chance / 2)
        guard let asked else { return own }
        // Everybody was told the same: a little more for each keeps them apart.
        return min(asked, .seconds(600)) + min(own, .seconds(2)) * chance
    }

    /// Calls `body` until it succeeds, fails for good or has failed often enough.
    public func callAsFunction<Result: Sendable>(
        _ body: () async throws(APIError) -> Result
    ) async throws(APIError) -> Result {
        try await callAsFunction(unless: { _ in false }, body)
    }

    /// Calls `body` until it succeeds, fails for good or has failed often enough.
    /// - Parameter isFinal: Whether `body` is not called again after a failure that may pass.
    func callAsFunction<Result: Sendable>(
        unless isFinal: (APIError) -> Bool, _ body: () async throws(APIError) -> Result
    ) async throws(APIError) -> Result {
        var failures = 0
        while true {
            do throws(APIError) {
                return try await body()
            } catch {
                failures += 1
                guard error.isPassing, !isFinal(error), failures < attempts else { throw error }
                // Otherwise a server could make one call last for hours.
                if let asked = error.retryAfter, asked > waits.upperBound { throw error }
                let wait = wait(after: failures, asked: error.retryAfter, chance: .random(in: 0...1))
                do { try await Task.sleep(for: wait) } catch { throw .transport(.cancelled) }
            }
        }
    }
}
