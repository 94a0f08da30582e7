internal import Foundation
internal import Synchronization
public import Testing

/// A condition that did not hold in time.
public struct ConditionNeverHeld: Error, CustomStringConvertible {
    public let description: String

    public init(description: String) { self.description = description }
}

/// Waits until `condition` holds, for conditions that no event announces.
///
/// The limit ends tests that hang. It is far above the time that a busy machine needs, so that it decides nothing else.
/// - Parameters:
///   - limit: The maximum time to wait.
///   - interval: The pause between two checks.
/// - Throws: ``ConditionNeverHeld`` with the place of the call after `limit`, and each error of `condition`.
public func eventually(
    within limit: Duration = .seconds(600), every interval: Duration = .milliseconds(5),
    file: StaticString = #fileID, line: UInt = #line, _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while try await !condition() {
        guard ContinuousClock.now < end else {
            throw ConditionNeverHeld(description: "\(file):\(line): the condition did not hold within \(limit)")
        }
        try await Task.sleep(for: interval)
    }
}

/// The greatest lateness of a thread that only sleeps: the time for which the machine paused.
private final class Ruler: Sendable {
    private static let step = 0.05
    private struct State {
        var worst = 0.0
        /// The end of the last sleep.
        var before = ProcessInfo.processInfo.systemUptime
    }

    private let state = Mutex(State())
    private let isEnded = Atomic(false)
    /// True after a failure during a pause.
    let hasFailure = Atomic(false)

    init() {
        Thread.detachNewThread { [self] in
            while !isEnded.load(ordering: .relaxed) {
                Thread.sleep(forTimeInterval: Self.step)
                state.withLock {
                    $0.worst = Self.worst($0)
                    $0.before = ProcessInfo.processInfo.systemUptime
                }
            }
        }
    }

    /// With the sleep that has not ended.
    var lateness: Duration { .seconds(state.withLock { Self.worst($0) }) }

    private static func worst(_ state: State) -> Double {
        max(state.worst, ProcessInfo.processInfo.systemUptime - state.before - step)
    }

    func end() { isEnded.store(true, ordering: .relaxed) }
}

/// Runs a test that depends on real time, and repeats it if it fails during a pause of the machine.
///
/// A failure counts only in an attempt without a pause. Without such an attempt the test fails.
/// - Parameters:
///   - limit: The longest pause that the test tolerates.
///   - body: The test. It starts from the beginning with each attempt.
/// - Throws: ``ConditionNeverHeld`` if the machine paused in each of 20 failed attempts.
public func undisturbed(
    by limit: Duration = .seconds(1), file: StaticString = #fileID, line: UInt = #line,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async throws {
    for _ in 0..<20 {
        let ruler = Ruler()
        defer { ruler.end() }
        try await withKnownIssue("the machine paused", isIntermittent: true, sourceLocation: sourceLocation) {
            try await body()
        } matching: { _ in
            guard ruler.lateness > limit else { return false }
            ruler.hasFailure.store(true, ordering: .relaxed)
            return true
        }
        if !ruler.hasFailure.load(ordering: .relaxed) { return }
    }
    throw ConditionNeverHeld(description: "\(file):\(line): the machine paused in each of 20 attempts")
}
