internal import Foundation

/// A value behind a lock, for short changes of a part of a state.
///
/// `Synchronization.Mutex` does the same and needs iOS 18 or macOS 15.
///
/// `@unchecked Sendable` is safe. Only ``withLock(_:)`` accesses the value, in one thread at a time. A value that is
/// put into the lock is not used outside of it.
final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: sending Value) { self.value = value }

    /// Calls `body` with the value while no other call has access. `body` must not call this lock.
    func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

/// A reference that does not retain its object, for async closures of an actor.
///
/// The compiler (Swift 6.3) runs an async closure with a capture list, such as `[weak self]`, outside of its caller's
/// actor. Without a list it runs in it.
final class WeakReference<Object: AnyObject> {
    private(set) weak var object: Object?

    init(_ object: Object) { self.object = object }
}

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
