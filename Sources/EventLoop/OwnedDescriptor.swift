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

    /// Another descriptor for what `descriptor` stands for, which is not given to programs that this one starts.
    public init(copying descriptor: CInt) throws(EventLoopError) {
        try self.init(takingOwnershipOf: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), from: "fcntl")
    }

    /// Gives the descriptor away; the caller closes it.
    public consuming func release() -> CInt {
        let descriptor = rawValue
        discard self
        return descriptor
    }

    deinit { _ = close(rawValue) }
}
