internal import Glibc

/// Why a server cannot listen.
public enum ListenError: Error, CustomStringConvertible {
    /// The host is not known.
    case unresolvable(SocketAddress, reason: String)
    /// A system call failed with this `errno`: the port is taken or not allowed, or the address is not this machine's.
    case system(SocketAddress, operation: String, CInt)

    /// Whether only a person can mend it: an unknown host, another machine's address, or a port that needs a right. A port that
    /// is taken may be free later.
    public var isForGood: Bool {
        switch self {
        case .unresolvable: true
        case .system(_, _, let code): code == EACCES || isMissingAddress
        }
    }

    /// True when the machine does not have the address, or not its kind (IPv6 that is switched off).
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

    /// The same of another address.
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
