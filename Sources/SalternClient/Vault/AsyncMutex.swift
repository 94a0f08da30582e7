/// A lock that a task holds across suspension points. Waiting tasks get it in the order in which they came.
///
/// A cancelled task keeps its place in the queue and has to unlock like any other.
final class AsyncMutex: Sendable {
    private struct State {
        var isLocked = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())

    /// True from the first ``lock()`` until the last waiting task has called ``unlock()``.
    var isLocked: Bool { state.withLock { $0.isLocked } }

    /// Number of tasks in the queue.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Returns when the caller holds the lock.
    func lock() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isLocked { state.waiters.append(continuation) }
                defer { state.isLocked = true }
                return !state.isLocked
            }
            if isFree { continuation.resume() }
        }
    }

    /// Passes the lock to the longest waiting task.
    func unlock() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            precondition(state.isLocked, "unlock without lock")
            guard !state.waiters.isEmpty else {
                state.isLocked = false
                return nil
            }
            return state.waiters.removeFirst()
        }
        next?.resume()
    }
}
