public import EventLoop
internal import Glibc
public import HTTPCore

/// An address to listen on: host and port, as in `127.0.0.1:8443`, `[::]:8443`, `localhost:8443` or
/// `[fe80::1%eth0]:8443`.
///
/// `*:8443` stands for all addresses of the machine. ``ResolvedAddress`` resolves it.
public struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    /// The host without brackets: a numeric address or a name.
    public let host: String
    /// The port; 0 lets the system choose.
    public let port: UInt16

    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Parses `host:port`, with an IPv6 address in brackets. Returns nil when either part is missing or invalid.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"),
            let port: UInt16 = ASCII.wholeNumber(text[text.index(after: colon)...])
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("[") {
            guard host.hasSuffix("]") else { return nil }
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty, !host.contains(where: \.isWhitespace) else { return nil }
        self.init(host: String(host), port: port)
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// True when only this machine can reach the address.
    public var isLoopback: Bool {
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

extension sockaddr_storage {
    /// Reads the address that a socket is bound to.
    init?(boundTo descriptor: CInt) {
        self.init()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &self) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard result == 0 else { return nil }
    }

    /// The numeric address of the peer of `accept(2)`. An IPv4 address mapped into IPv6 becomes IPv4.
    var clientAddress: ClientAddress {
        var copy = self
        return withUnsafeMutablePointer(to: &copy) { pointer in
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            if CInt(pointer.pointee.ss_family) == AF_INET {
                return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
                    inet_ntop(AF_INET, &address.pointee.sin_addr, &text, socklen_t(text.count))
                    return ClientAddress(address: text.asString, port: UInt16(bigEndian: address.pointee.sin_port))
                }
            }
            return pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
                inet_ntop(AF_INET6, &address.pointee.sin6_addr, &text, socklen_t(text.count))
                let numeric = text.asString
                let plain =
                    numeric.hasPrefix("::ffff:") && numeric.contains(".") ? String(numeric.dropFirst(7)) : numeric
                return ClientAddress(address: plain, port: UInt16(bigEndian: address.pointee.sin6_port))
            }
        }
    }
}

extension [CChar] {
    /// The bytes before the first NUL.
    fileprivate var asString: String {
        String(decoding: prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The only interpretation of a listening address, for the server of this machine and for local commands.
extension SocketAddress {
    /// Checks that a server on this machine could listen here: the host is known, and has an address of this machine.
    ///
    /// A port in use is no error, because the running server has it.
    /// - Returns: The addresses of the host that this machine lacks, and that would not be served.
    public func requireOwnHost() throws(ListenError) -> [SocketAddress] {
        do throws(ListenError) {
            return try SocketAddress(host: host, port: 0).listen { _ in }.missing
                .map { SocketAddress(host: $0.host, port: port) }
        } catch {
            throw error.at(self)
        }
    }

    /// True when this process may listen on the port, free or not, because low ports need a privilege. Also true when
    /// the address cannot be bound for another reason.
    public var isPermitted: Bool {
        guard let all = try? ResolvedAddress.all(resolving: self) else { return true }
        return all.allSatisfy { resolved in
            let raw = socket(resolved.family, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
            guard raw >= 0, let descriptor = try? OwnedDescriptor(takingOwnershipOf: raw) else { return true }
            return resolved.withPointer { bind(descriptor.rawValue, $0, $1) } == 0 || errno != EACCES
        }
    }

    /// The number of ports to try when the system chooses one: it may be in use at a later address.
    private static let portAttempts = 20

    /// Listens at every address of this machine that this one stands for, on one port.
    /// - Parameters:
    ///   - joining: True when other sockets of this process already listen there.
    ///   - take: Receives each socket.
    /// - Returns: The port, and the addresses that this machine lacks.
    /// - Throws: ``ListenError`` when the machine has none of them, or when one cannot be used for another reason. No
    ///   socket was passed to `take` then.
    @discardableResult
    func listen(
        joining: Bool = false, take: (consuming ListeningSocket) -> Void
    ) throws(ListenError) -> (port: UInt16, missing: [SocketAddress]) {
        let all = try ResolvedAddress.all(resolving: self)
        var attempt = 1
        while true {
            do throws(ListenError) {
                return try listen(at: all, joining: joining, take: take)
            } catch {
                guard port == 0, error.isPortInUse, attempt < Self.portAttempts else { throw error }
                attempt += 1
            }
        }
    }

    /// Binds all addresses, and then passes on the sockets. After an error all of them are closed.
    private func listen(
        at all: [ResolvedAddress], joining: Bool, take: (consuming ListeningSocket) -> Void
    ) throws(ListenError) -> (port: UInt16, missing: [SocketAddress]) {
        var bound: [(address: ResolvedAddress, socket: BoundSocket)] = []
        var missing: [SocketAddress] = []
        var failure: ListenError?
        var port = port
        for resolved in all {
            // The IPv6 socket serves this address.
            if resolved.isWildcard, resolved.family == AF_INET, bound.contains(where: \.address.isWildcard) { continue }
            let target = resolved.with(port: port)
            do throws(ListenError) {
                let socket = try ListeningSocket(binding: target, of: self, joining: joining)
                port = socket.port
                bound.append((resolved, BoundSocket(socket)))
            } catch {
                guard error.isMissingAddress else { throw error }
                missing.append(target.storage.numericAddress)
                failure = failure ?? error
            }
        }
        if bound.isEmpty, let failure { throw failure }
        for (_, socket) in bound { socket.pass(to: take) }
        return (port, missing)
    }

    /// A socket of an attempt, which an array can hold.
    private final class BoundSocket {
        private var socket: ListeningSocket?

        init(_ socket: consuming ListeningSocket) { self.socket = consume socket }

        func pass(to take: (consuming ListeningSocket) -> Void) {
            if let socket = socket.take() { take(socket) }
        }
    }

    /// Connects to a server of this machine that listens here, at its first address that accepts.
    /// - Parameters:
    ///   - timeout: The time limit of connecting, and of each later read and write, in seconds.
    ///   - senders: The server's ``HTTPServerConfiguration/proxyProtocolSenders``. A connection from one of them begins
    ///     with a ``ProxyHeader``.
    /// - Returns: A blocking socket.
    /// - Throws: ``ListenError`` with the last reason.
    public func connectLocally(
        timeout: Int, proxyProtocolSenders senders: TrustedProxies = TrustedProxies()
    ) throws(ListenError) -> OwnedDescriptor {
        var failure = ListenError.unresolvable(self, reason: "it has no address")
        for resolved in try ResolvedAddress.all(resolving: self) {
            for target in try resolved.targets() {
                let raw = socket(target.family, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
                guard raw >= 0, let descriptor = try? OwnedDescriptor(takingOwnershipOf: raw) else {
                    failure = .system(self, operation: "socket", errno)
                    continue
                }
                var limit = timeval(tv_sec: timeout, tv_usec: 0)
                for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
                    setsockopt(raw, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
                }
                guard target.withPointer({ connect(raw, $0, $1) }) == 0 else {
                    failure = .system(self, operation: "connect", errno)
                    continue
                }
                if let source = sockaddr_storage(boundTo: raw)?.clientAddress, senders.contains(source.ip) {
                    let header = ProxyHeader.local
                    guard send(raw, header, header.count, CInt(MSG_NOSIGNAL)) == header.count else {
                        failure = .system(self, operation: "send", errno)
                        continue
                    }
                }
                return descriptor
            }
        }
        throw failure
    }
}
