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
