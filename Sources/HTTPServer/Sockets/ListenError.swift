internal import Glibc

/// The reason for which a server cannot listen.
public enum ListenError: Error, CustomStringConvertible {
    /// The host is unknown.
    case unresolvable(SocketAddress, reason: String)
    /// A system call failed with this `errno`: the port is taken or not allowed, or the address is not this machine's.
    case system(SocketAddress, operation: String, CInt)

    /// True when only an administrator can correct it: an unknown host, another machine's address, or a port that needs
    /// a privilege. A port in use may become free.
    public var isForGood: Bool {
        switch self {
        case .unresolvable: true
        case .system(_, _, let code): code == EACCES || isMissingAddress
        }
    }

    /// True when the machine lacks the address, or its kind (disabled IPv6).
    var isMissingAddress: Bool {
        guard case .system(_, _, let code) = self else { return false }
        return code == EADDRNOTAVAIL || code == EAFNOSUPPORT
    }

    /// The system's message for the failure.
    public var reason: String {
        switch self {
        case .unresolvable(_, let reason): reason
        case .system(_, _, let code): String(cString: strerror(code))
        }
    }

    /// Returns the same error for another address.
    func at(_ address: SocketAddress) -> ListenError {
        switch self {
        case .unresolvable(_, let reason): .unresolvable(address, reason: reason)
        case .system(_, let operation, let code): .system(address, operation: operation, code)
        }
    }

    public var description: String {
        switch self {
        case .unresolvable(let address, let reason): "cannot listen on \(address): \(reason)"
        case .system(let address, let operation, let code):
            "cannot listen on \(address): \(operation): \(String(cString: strerror(code)))"
        }
    }
}
