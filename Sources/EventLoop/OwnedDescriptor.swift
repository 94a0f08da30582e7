internal import Glibc

/// A file descriptor with one owner, closed with it.
public struct OwnedDescriptor: ~Copyable, Sendable {
    /// The descriptor, for system calls during the owner's life.
    public let rawValue: CInt

    /// Takes ownership of `descriptor`, the result of a system call that may have failed.
    /// - Throws: ``EventLoopError/system(operation:_:)`` with `errno` when it is negative.
    public init(takingOwnershipOf descriptor: CInt, from operation: String = "open") throws(EventLoopError) {
        guard descriptor >= 0 else { throw .system(operation: operation, errno) }
        rawValue = descriptor
    }

    /// Duplicates `descriptor`. Programs that this process starts do not inherit the copy.
    public init(copying descriptor: CInt) throws(EventLoopError) {
        try self.init(takingOwnershipOf: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), from: "fcntl")
    }

    /// Transfers the descriptor to the caller, which closes it.
    public consuming func release() -> CInt {
        let descriptor = rawValue
        discard self
        return descriptor
    }

    deinit { _ = close(rawValue) }
}
