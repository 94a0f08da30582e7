/// Repeats a request after waits that double and contain a random part. When the server requires a longer wait than the
/// longest one, the error is thrown at once, with the server's wait.
///
/// Only for requests that the API allows to repeat ("Retries" in docs/api-guide.md), because their reply may have been
/// lost.
///
/// ```swift
/// settings.retries = Retries(attempts: 5, waits: .milliseconds(500)...(.seconds(10)))
/// ```
public struct Retries: Sendable {
    /// The maximum number of times that a request is sent, including the first time.
    public var attempts: Int
    /// The first and the longest wait.
    public var waits: ClosedRange<Duration>
    /// Returns true when the store is wanted: a temporary error is then thrown at once, also during a wait.
    var isStoreWanted: (@Sendable () -> Bool)?

    /// The longest wait between two calls of ``isStoreWanted``.
    private static let step = Duration.milliseconds(250)

    /// Creates a rule.
    /// - Parameters:
    ///   - attempts: The maximum number of times that a request is sent, including the first time.
    ///   - waits: The first wait, and the longest one. A wait doubles each time.
    public init(attempts: Int = 5, waits: ClosedRange<Duration> = .seconds(1)...(.seconds(60))) {
        self.attempts = attempts
        self.waits = waits
    }

    /// Returns the wait after the `failures`-th failure in a row. The server's wait has precedence. Otherwise it is
    /// half of the doubled wait and a random part of the other half.
    /// - Parameter chance: A random number from 0 to 1.
    public func wait(after failures: Int, asked: Duration?, chance: Double) -> Duration {
        let doubled = min(waits.lowerBound * (1 << min(max(failures - 1, 0), 16)), waits.upperBound)
        let own = doubled * (0.5 + chance / 2)
        guard let asked else { return own }
        // All clients receive the same wait. A random part keeps them apart.
        return min(asked, .seconds(600)) + min(own, .seconds(2)) * chance
    }

    /// Calls `body` until it succeeds, fails with a permanent error, or has failed ``attempts`` times.
    public func callAsFunction<Result: Sendable>(
        _ body: () async throws(APIError) -> Result
    ) async throws(APIError) -> Result {
        try await callAsFunction(unless: { _ in false }, body)
    }

    /// Calls `body` until it succeeds, fails with a permanent error, or has failed ``attempts`` times.
    /// - Parameter isFinal: True for a temporary error after which `body` must not be called again.
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
                // Otherwise a server could delay one call by hours.
                if let asked = error.retryAfter, asked > waits.upperBound { throw error }
                let wait = wait(after: failures, asked: error.retryAfter, chance: .random(in: 0...1))
                guard await pause(for: wait) else { throw Task.isCancelled ? .transport(.cancelled) : error }
            }
        }
    }

    /// Waits.
    /// - Returns: False when the task is cancelled or the store is wanted.
    private func pause(for wait: Duration) async -> Bool {
        let end = ContinuousClock.now + wait
        while isStoreWanted?() != true {
            let rest = end - .now
            if rest <= .zero { return true }
            do { try await Task.sleep(for: isStoreWanted == nil ? rest : min(rest, Self.step)) } catch { return false }
        }
        return false
    }
}
