internal import Glibc

/// A file descriptor with one owner, closed when the owner goes.
public struct OwnedDescriptor: ~Copyable, Sendable {
    /// The descriptor, for system calls while the owner lives.
    public let rawValue: CInt

    /// Takes ownership of `descriptor`, the result of a system call that may have failed.
    /// - Throws: ``EventLoopError/system(operation:_:)`` with `errno` when it is negative.
    public init(takingOwnershipOf descriptor: CInt, from operation: String = "open") throws(EventLoopError) {
        guard descriptor >= 0 else { throw .system(operation: operation, errno) }
        rawValue = descriptor
    }

    /// Gives the descriptor away; the caller closes it.
    public consuming func release() -> CInt {
        let descriptor = rawValue
        discard self
        return descriptor
    }

    deinit { _ = close(rawValue) }
}
