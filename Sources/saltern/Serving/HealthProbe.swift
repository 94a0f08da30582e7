import Glibc
import HTTPServer
import TransportSecurity

/// One blocking request to the server on this machine, over TLS with a pinned key.
struct HealthProbe {
    let address: SocketAddress
    let pin: SPKIPin

    /// Why there was no answer.
    enum Failure: Error, CustomStringConvertible {
        case cannotConnect(SocketAddress, reason: String)
        case timedOut
        case noAnswer

        var description: String {
            switch self {
            case .cannotConnect(let address, let reason): "cannot connect to \(address): \(reason)"
            case .timedOut: "no answer in time"
            case .noAnswer: "the answer is not HTTP"
            }
        }
    }

    private static let timeout = timeval(tv_sec: 5, tv_usec: 0)

    /// The status of `GET path`.
    func status(of path: String) throws -> Int {
        let descriptor = try connect()
        defer { close(descriptor) }
        let context = try TLSClientContext(trust: .pins([pin]))
        let connection = try TLSConnection(context: context, descriptor: descriptor, hostName: nil)
        guard case .finished = try connection.handshake() else { throw Failure.timedOut }
        // Not the address: that of a link has a zone, which no `Host` has (RFC 6874).
        let request = Array("GET \(path) HTTP/1.1\r\nHost: localhost:\(address.port)\r\nConnection: close\r\n\r\n".utf8)
        guard case .bytes(request.count) = try request.withUnsafeBytes({ try connection.write($0) }) else {
            throw Failure.timedOut
        }
        var reply = [UInt8](repeating: 0, count: 4_096)
        guard case .bytes(let count) = try reply.withUnsafeMutableBytes({ try connection.read(into: $0) }) else {
            throw Failure.timedOut
        }
        let line = String(decoding: reply[..<count].prefix { $0 != 13 }, as: UTF8.self)
        guard line.hasPrefix("HTTP/1.1 "), let status = Int(line.dropFirst(9).prefix(3)) else { throw Failure.noAnswer }
        return status
    }

    /// A connected blocking socket whose reads and writes end in time: to the first address of the server's that accepts.
    private func connect() throws(Failure) -> CInt {
        var reason = "it has no address"
        for host in hosts {
            var hints = addrinfo()
            hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
            var list: UnsafeMutablePointer<addrinfo>?
            let code = getaddrinfo(host, String(address.port), &hints, &list)
            defer { if let list { freeaddrinfo(list) } }
            if code != 0 { reason = String(cString: gai_strerror(code)) }
            var next = list
            while let target = next?.pointee {
                if let descriptor = connect(to: target) { return descriptor }
                reason = String(cString: strerror(errno))
                next = target.ai_next
            }
        }
        throw .cannotConnect(address, reason: reason)
    }

    /// A server that listens on every address is asked on a loopback one, of which the machine may have one only.
    private var hosts: [String] {
        switch address.host {
        case "0.0.0.0": ["127.0.0.1"]
        case "::", "*": ["127.0.0.1", "::1"]
        default: [address.host]
        }
    }

    /// - Returns: nil when it does not accept; then `errno` says why.
    private func connect(to target: addrinfo) -> CInt? {
        let descriptor = socket(target.ai_family, target.ai_socktype, 0)
        guard descriptor >= 0 else { return nil }
        var timeout = Self.timeout
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
        }
        guard Glibc.connect(descriptor, target.ai_addr, target.ai_addrlen) != 0 else { return descriptor }
        let number = errno
        close(descriptor)
        errno = number
        return nil
    }
}
