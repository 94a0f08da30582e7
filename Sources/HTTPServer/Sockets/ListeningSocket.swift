internal import EventLoop
internal import Glibc
internal import HTTPCore

/// A non-blocking, listening TCP socket. The listeners of the other loops share its port.
struct ListeningSocket: ~Copyable {
    private let descriptor: OwnedDescriptor
    /// The port from the system, which differs from the requested one if that was 0.
    let port: UInt16

    /// The result of `accept(2)`.
    enum Accepted: ~Copyable {
        case connection(OwnedDescriptor, ClientAddress)
        /// No connection waits.
        case none
        /// No descriptor is free. Retry after others have been closed.
        case exhausted
    }

    /// Binds and listens.
    /// - Parameters:
    ///   - address: The source of `resolved`, for errors.
    ///   - joining: True when another socket of this process already listens there. The first one binds the address
    ///     alone, so that the kernel rejects a second server. It shares it after it listens.
    init(binding resolved: ResolvedAddress, of address: SocketAddress, joining: Bool = false) throws(ListenError) {
        func failure(_ operation: String) -> ListenError { .system(address, operation: operation, errno) }

        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let raw = socket(resolved.family, type, 0)
        guard raw >= 0 else { throw failure("socket") }
        // Owned before another step can fail.
        guard let descriptor = try? OwnedDescriptor(takingOwnershipOf: raw) else { throw failure("socket") }

        guard Self.enable(SO_REUSEADDR, level: SOL_SOCKET, on: raw) else { throw failure("setsockopt") }
        // `[::]` also stands for IPv4, independent of net.ipv6.bindv6only. Other IPv6 addresses are not affected.
        if resolved.family == AF_INET6, !Self.set(IPV6_V6ONLY, level: CInt(IPPROTO_IPV6), to: 0, on: raw) {
            throw failure("setsockopt")
        }
        // Each loop has a listener on the same port. The kernel distributes connections among them.
        if joining, !Self.enable(SO_REUSEPORT, level: SOL_SOCKET, on: raw) { throw failure("setsockopt") }
        // Accepted sockets inherit it. Without it, the second record of a TLS reply waits for a delayed ACK.
        guard Self.enable(TCP_NODELAY, level: CInt(IPPROTO_TCP), on: raw) else { throw failure("setsockopt") }
        // Also inherited: the kernel holds few unsent bytes, so memory stays where it is counted. A socket becomes
        // writable when its peer takes bytes.
        guard Self.set(TCP_NOTSENT_LOWAT, level: CInt(IPPROTO_TCP), to: Self.unsentBytes, on: raw) else {
            throw failure("setsockopt")
        }
        guard resolved.withPointer({ bind(raw, $0, $1) }) == 0 else { throw failure("bind") }
        guard listen(raw, 4_096) == 0 else { throw failure("listen") }
        if !joining, !Self.enable(SO_REUSEPORT, level: SOL_SOCKET, on: raw) { throw failure("setsockopt") }

        guard let bound = sockaddr_storage(boundTo: raw) else { throw failure("getsockname") }
        port = bound.clientAddress.port
        self.descriptor = descriptor
    }

    /// Takes over a listening socket, with its settings and the connections in its queue.
    init(inheriting descriptor: consuming OwnedDescriptor, at address: SocketAddress) throws(ListenError) {
        guard let bound = sockaddr_storage(boundTo: descriptor.rawValue) else {
            throw .system(address, operation: "getsockname", errno)
        }
        port = bound.clientAddress.port
        self.descriptor = descriptor
    }

    var rawValue: CInt { descriptor.rawValue }

    func accept() -> Accepted {
        var peer = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        while true {
            let raw = withUnsafeMutablePointer(to: &peer) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.accept(descriptor.rawValue, $0, &length)
                }
            }
            if raw >= 0, let connection = try? OwnedDescriptor(takingOwnershipOf: raw) {
                guard fcntl(raw, F_SETFL, O_NONBLOCK) == 0, fcntl(raw, F_SETFD, FD_CLOEXEC) == 0 else { continue }
                return .connection(connection, peer.clientAddress)
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted
            default: return .none
            }
        }
    }

    /// The bytes of a reply that the kernel takes ahead of the peer.
    private static let unsentBytes: CInt = 128 * 1_024

    private static func enable(_ option: CInt, level: CInt, on descriptor: CInt) -> Bool {
        set(option, level: level, to: 1, on: descriptor)
    }

    private static func set(_ option: CInt, level: CInt, to value: CInt, on descriptor: CInt) -> Bool {
        var value = value
        return setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size)) == 0
    }
}

/// Listening sockets in transit from one process to another, with one owner that closes them.
public final class ListeningSockets: Sendable {
    /// The descriptors, for system calls during the owner's life.
    public let rawValues: [CInt]

    /// Takes ownership of `descriptors`.
    public init(takingOwnershipOf descriptors: [CInt]) { rawValues = descriptors }

    deinit { for descriptor in rawValues { close(descriptor) } }

    /// Returns the sockets if there is at least one and all listen at addresses of `address`. Port 0 stands for any.
    public func ifListening(at address: SocketAddress) -> ListeningSockets? {
        guard let resolved = try? ResolvedAddress.all(resolving: address), !rawValues.isEmpty else { return nil }
        let wanted = resolved.map(\.storage.clientAddress.address)
        let fits = rawValues.allSatisfy { descriptor in
            guard Self.isListening(descriptor), let bound = sockaddr_storage(boundTo: descriptor)?.clientAddress else {
                return false
            }
            return wanted.contains(bound.address) && (address.port == 0 || bound.port == address.port)
        }
        return fits ? self : nil
    }

    /// The numeric addresses of the sockets, each once.
    var addresses: [SocketAddress] {
        var found: [SocketAddress] = []
        for descriptor in rawValues {
            guard let bound = sockaddr_storage(boundTo: descriptor)?.numericAddress else { continue }
            if !found.contains(bound) { found.append(bound) }
        }
        return found
    }

    private static func isListening(_ descriptor: CInt) -> Bool {
        var listens: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0
    }

    /// Returns copies for the loop `index` of `count`. Each socket has a loop that accepts from it, and each loop at
    /// least one socket.
    func copies(forLoop index: Int, of count: Int) throws(EventLoopError) -> [CInt] {
        let mine =
            index < rawValues.count
            ? stride(from: index, to: rawValues.count, by: count).map { rawValues[$0] }
            : [rawValues[index % rawValues.count]]
        var copies: [CInt] = []
        for descriptor in mine {
            do throws(EventLoopError) {
                copies.append(try OwnedDescriptor(copying: descriptor).release())
            } catch {
                for copy in copies { close(copy) }
                throw error
            }
        }
        return copies
    }
}

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

    /// True when another socket has the port.
    var isPortInUse: Bool {
        guard case .system(_, _, let code) = self else { return false }
        return code == EADDRINUSE
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
