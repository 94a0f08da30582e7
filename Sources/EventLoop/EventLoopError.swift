internal import Glibc

/// A failure of the system to serve an event loop.
public enum EventLoopError: Error, CustomStringConvertible {
    /// A system call failed with this `errno`.
    case system(operation: String, CInt)
    /// libevent could not allocate.
    case outOfMemory

    public var description: String {
        switch self {
        case .system(let operation, let code): "\(operation): \(String(cString: strerror(code)))"
        case .outOfMemory: "out of memory"
        }
    }
}
