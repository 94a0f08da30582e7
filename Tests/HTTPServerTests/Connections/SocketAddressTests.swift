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

    @Test(arguments: [
        ("127.0.0.1", true), ("127.1.2.3", true), ("::1", true), ("localhost", true), ("0.0.0.0", false),
        ("127.a.b.example", false), ("::", false), ("10.0.0.1", false),
    ])
    func `loopback addresses are known`(host: String, expected: Bool) {
        #expect(SocketAddress(host: host, port: 1).isLoopback == expected)
    }
}
