internal import EventLoop
internal import Synchronization

/// Runs what must not end half-way because its client has gone: looks at secrets, with their counts. They are few, one at
/// a counter, and end by themselves; a stop waits for them.
public final class ActiveSecretChecks: Sendable {
    private struct State {
        var count = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    public init() {}

    /// Runs `body` in a task of its own, and waits for it also when the caller's is cancelled.
    func run<Value: Sendable>(
        on loop: EventLoop, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        state.withLock { $0.count += 1 }
        let task = Task(executorPreference: loop) {
            defer { self.end() }
            return try await body()
        }
        return try await task.value
    }

    /// Returns when none is under way.
    public func finish() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.count > 0 { state.waiters.append(continuation) }
                return state.count == 0
            }
            if isIdle { continuation.resume() }
        }
    }

    private func end() {
        let waiters = state.withLock { state in
            state.count -= 1
            if state.count > 0 { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
