import EventLoop
import Glibc
import HTTPCore
import Testing

@testable import HTTPServer

@Suite struct SocketAddressTests {
    @Test(
        arguments: [
            ("127.0.0.1:8443", "127.0.0.1", 8_443), ("[::1]:1", "::1", 1), ("localhost:0", "localhost", 0),
        ] as [(String, String, UInt16)])
    func `host and port are told apart`(text: String, host: String, port: UInt16) {
        #expect(SocketAddress(text) == SocketAddress(host: host, port: port))
        #expect(SocketAddress(text)?.description == text)
    }

    @Test(arguments: ["", "8443", ":8443", "::1:8443", "[::1:8443", "localhost:", "localhost:65536", "a:-1", "[]:1"])
    func `anything else is refused`(text: String) {
        #expect(SocketAddress(text) == nil)
    }

    @Test(arguments: [("*:80", "*"), ("[fe80::1%eth0]:9690", "fe80::1%eth0"), ("0:1", "0")])
    func `other spellings are kept for the resolver`(text: String, host: String) {
        #expect(SocketAddress(text)?.host == host)
        #expect(SocketAddress(text)?.description == text)
    }

    @Test(arguments: [
        ("*", ["::", "0.0.0.0"]), ("::", ["::", "0.0.0.0"]), ("0::0", ["::", "0.0.0.0"]), ("0", ["0.0.0.0"]),
    ])
    func `all addresses of the machine have those of IPv4 for machines without IPv6`(host: String, all: [String]) throws
    {
        let resolved = try ResolvedAddress.all(resolving: SocketAddress(host: host, port: 7))
        #expect(resolved.map(\.storage.clientAddress.address) == all)
        #expect(resolved.allSatisfy { $0.isWildcard && $0.storage.clientAddress.port == 7 })
        let targets = try resolved.flatMap { try $0.targets() }.map(\.storage.clientAddress.address)
        #expect(targets.contains("127.0.0.1"))
        #expect(!targets.contains { all.contains($0) })
    }

    @Test func `an address of a link keeps its zone, and the port changes alone`() throws {
        let resolved = try ResolvedAddress.all(resolving: SocketAddress(host: "fe80::1%lo", port: 7))
        #expect(resolved.map(\.storage.numericAddress) == [SocketAddress(host: "fe80::1%lo", port: 7)])
        #expect(resolved[0].with(port: 8).storage.numericAddress == SocketAddress(host: "fe80::1%lo", port: 8))
    }

    @Test func `a server is reached where it listens, whatever its address is called`() throws {
        for host in ["127.0.0.1", "127.0.0.9", "localhost", "*", "0", "0.0.0.0", "::"] {
            let address = SocketAddress(host: host, port: 0)
            var sockets: [CInt] = []
            defer { for socket in sockets { close(socket) } }
            let port = try address.listen { sockets.append(dup($0.rawValue)) }.port
            #expect(!sockets.isEmpty)
            _ = try SocketAddress(host: host, port: port).connectLocally(timeout: 5)
        }
    }

    @Test func `a server that expects the PROXY protocol from this machine gets its header`() throws {
        let machine = TrustedProxies([try #require(AddressBlock("127.0.0.0/8"))])
        for (senders, length) in [(machine, ProxyHeader.prefixLength), (TrustedProxies(), 0)] {
            var sockets: [CInt] = []
            defer { for socket in sockets { close(socket) } }
            let port = try SocketAddress(host: "127.0.0.1", port: 0).listen { sockets.append(dup($0.rawValue)) }.port
            let client = try SocketAddress(host: "127.0.0.1", port: port)
                .connectLocally(timeout: 60, proxyProtocolSenders: senders)
            shutdown(client.rawValue, CInt(SHUT_WR))
            // Waits for the connection.
            let listener = try #require(sockets.first)
            #expect(fcntl(listener, F_SETFL, 0) == 0)
            let peer = accept(listener, nil, nil)
            defer { close(peer) }
            var bytes = [UInt8](repeating: 0, count: 64)
            let count = recv(peer, &bytes, bytes.count, CInt(MSG_WAITALL))
            #expect(count == length)
            let header = ProxyHeader(Array(bytes.prefix(max(count, 0))))
            #expect((header != nil) == (length > 0))
            #expect(header?.client == nil)
        }
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.1.2.3", true), ("::1", true), ("localhost", true), ("0.0.0.0", false),
        ("127.a.b.example", false), ("::", false), ("10.0.0.1", false),
    ])
    func `loopback addresses are known`(host: String, expected: Bool) {
        #expect(SocketAddress(host: host, port: 1).isLoopback == expected)
    }
}
