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
