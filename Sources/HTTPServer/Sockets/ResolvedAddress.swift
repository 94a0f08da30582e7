internal import Glibc
internal import HTTPCore

/// A resolved address in the form of system calls.
struct ResolvedAddress: Sendable, Equatable {
    let family: CInt
    private(set) var storage: sockaddr_storage
    let length: socklen_t

    /// Returns every address that `address` stands for, in the resolver's order, at least one.
    ///
    /// Numeric addresses need no name service. `[::]` and `*` stand for all addresses of the machine. The IPv6 address
    /// serves IPv4 as well. The IPv4 address follows it, for machines without IPv6.
    static func all(resolving address: SocketAddress) throws(ListenError) -> [ResolvedAddress] {
        var found = try list(address.host == "*" ? "::" : address.host, of: address)
        if found.contains(where: { $0.isWildcard && $0.family == AF_INET6 }) {
            found.removeAll { $0.isWildcard && $0.family == AF_INET }
            found += try list("0.0.0.0", of: address)
        }
        return found
    }

    private static func list(_ host: String, of address: SocketAddress) throws(ListenError) -> [ResolvedAddress] {
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(address.port), &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        guard code == 0 else { throw .unresolvable(address, reason: String(cString: gai_strerror(code))) }
        var found: [ResolvedAddress] = []
        var next = list
        while let entry = next?.pointee {
            if let resolved = ResolvedAddress(entry), !found.contains(resolved) { found.append(resolved) }
            next = entry.ai_next
        }
        if found.isEmpty { throw .unresolvable(address, reason: "it has no address") }
        return found
    }

    private init?(_ entry: addrinfo) {
        guard let bytes = entry.ai_addr, entry.ai_family == AF_INET || entry.ai_family == AF_INET6 else { return nil }
        var storage = sockaddr_storage()
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: Int(entry.ai_addrlen)))
        }
        family = entry.ai_family
        length = entry.ai_addrlen
        self.storage = storage
    }

    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    /// True for an address that stands for all addresses of the machine.
    var isWildcard: Bool { ["0.0.0.0", "::"].contains(storage.clientAddress.address) }

    /// Returns the same address with another port.
    func with(port: UInt16) -> ResolvedAddress {
        var copy = self
        withUnsafeMutablePointer(to: &copy.storage) { pointer in
            if family == AF_INET {
                pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee.sin_port = port.bigEndian }
            } else {
                pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { $0.pointee.sin6_port = port.bigEndian }
            }
        }
        return copy
    }

    /// Returns the addresses for a connection to a server of this machine that listens here. For a server at all
    /// addresses, these are the loopback ones.
    func targets() throws(ListenError) -> [ResolvedAddress] {
        guard isWildcard else { return [self] }
        let hosts = family == AF_INET ? ["127.0.0.1"] : ["127.0.0.1", "::1"]
        var found: [ResolvedAddress] = []
        for host in hosts {
            let address = SocketAddress(host: host, port: storage.clientAddress.port)
            found += try Self.list(host, of: address)
        }
        return found
    }

    static func == (left: ResolvedAddress, right: ResolvedAddress) -> Bool {
        left.length == right.length
            && withUnsafeBytes(of: left.storage) { first in
                withUnsafeBytes(of: right.storage) {
                    first.prefix(Int(left.length)).elementsEqual($0.prefix(Int(left.length)))
                }
            }
    }
}

extension sockaddr_storage {
    /// The numeric address, with the zone of a link-local one.
    var numericAddress: SocketAddress {
        var copy = self
        let length = socklen_t(
            CInt(ss_family) == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size)
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let code = withUnsafeMutablePointer(to: &copy) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getnameinfo($0, length, &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST)
            }
        }
        let plain = clientAddress
        guard code == 0 else { return SocketAddress(host: plain.address, port: plain.port) }
        let text = String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return SocketAddress(host: text, port: plain.port)
    }
}
