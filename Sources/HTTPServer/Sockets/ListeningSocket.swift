internal import EventLoop
internal import Glibc
internal import HTTPCore

/// A listening TCP socket, non-blocking, shared by port with the listeners of the other loops.
struct ListeningSocket: ~Copyable {
    private let descriptor: OwnedDescriptor
    /// The port that the system gave, which differs from the wish when that was 0.
    let port: UInt16

    /// What `accept(2)` brought.
    enum Accepted: ~Copyable {
        case connection(OwnedDescriptor, ClientAddress)
        /// Nobody waits.
        case none
        /// No descriptor is free; try again when others have been closed.
        case exhausted
    }

    /// Binds and listens.
    /// - Parameters:
    ///   - address: What `resolved` was found for, for errors.
    ///   - joining: Whether another socket of this process listens there already. The first one takes the address
    ///     for itself, so that a second server is refused by the kernel, and opens it to its siblings only when it is
    ///     listening.
    init(binding resolved: ResolvedAddress, of address: SocketAddress, joining: Bool = false) throws(ListenError) {
        func failure(_ operation: String) -> ListenError { .system(address, operation: operation, errno) }

        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let raw = socket(resolved.family, type, 0)
        guard raw >= 0 else { throw failure("socket") }
        // Owned before anything else can fail.
        guard let descriptor = try? OwnedDescriptor(takingOwnershipOf: raw) else { throw failure("socket") }

        guard Self.enable(SO_REUSEADDR, level: SOL_SOCKET, on: raw) else { throw failure("setsockopt") }
        // `[::]` stands for IPv4 as well, whatever net.ipv6.bindv6only is. Other IPv6 addresses are not affected.
        if resolved.family == AF_INET6, !Self.set(IPV6_V6ONLY, level: CInt(IPPROTO_IPV6), to: 0, on: raw) {
            throw failure("setsockopt")
        }
        // One listener a loop on the same port: the kernel spreads connections over them.
        if joining, !Self.enable(SO_REUSEPORT, level: SOL_SOCKET, on: raw) { throw failure("setsockopt") }
        // Accepted sockets inherit it; without it the second record of a TLS reply waits for a delayed ACK.
        guard Self.enable(TCP_NODELAY, level: CInt(IPPROTO_TCP), on: raw) else { throw failure("setsockopt") }
        // Inherited as well: the kernel holds little that it has not sent, so memory stays where it is counted, and a
        // socket is writable when its peer takes something.
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

    /// Takes over a socket that listens already, with what it was set to and the connections that wait in its queue.
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

    /// What the kernel takes of a reply before the peer has taken what came before.
    private static let unsentBytes: CInt = 128 * 1_024

    private static func enable(_ option: CInt, level: CInt, on descriptor: CInt) -> Bool {
        set(option, level: level, to: 1, on: descriptor)
    }

    private static func set(_ option: CInt, level: CInt, to value: CInt, on descriptor: CInt) -> Bool {
        var value = value
        return setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size)) == 0
    }
}
