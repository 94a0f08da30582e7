internal import EventLoop
internal import Synchronization

/// Runs work that must complete even if its client disconnects: checks of secrets, with their counts. There is at most
/// one for each counter, and each ends by itself. A stop of the server waits for them.
public final class ActiveSecretChecks: Sendable {
    private struct State {
        var count = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    public init() {}

    /// Runs `body` in a task of its own, and waits for it even if the caller's task is cancelled.
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

    /// Returns when no check is running.
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
