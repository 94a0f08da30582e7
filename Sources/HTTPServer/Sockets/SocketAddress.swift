internal import EventLoop
internal import Glibc
internal import HTTPCore

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
