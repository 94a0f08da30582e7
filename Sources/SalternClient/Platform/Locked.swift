internal import Foundation

/// A value behind a lock, for states of which a few lines at a time change a part.
///
/// `Synchronization.Mutex` does the same and needs iOS 18 or macOS 15.
///
/// `@unchecked Sendable` is safe: the value is reached in ``withLock(_:)`` only, where one thread at a time is, and a value that
/// is put into the lock is not used outside of it.
final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: sending Value) { self.value = value }

    /// Calls `body` with the value, while no other call has it. `body` does not call this lock.
    func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
