import HTTPCore
import Testing

@Suite struct TrustedProxiesTests {
    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.0", false), ("10.0.0.0/8", "::ffff:10.1.2.3", true),
        ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false), ("192.0.2.1/32", "192.0.2.1", true),
        ("2001:db8::/32", "2001:db8:ffff::1", true), ("2001:db8::/32", "2001:db9::", false),
        ("::1", "::1", true), ("::1", "0.0.0.1", false), ("::ffff:10.0.0.0/104", "10.9.9.9", true),
        ("128.0.0.0/1", "200.1.1.1", true), ("128.0.0.0/1", "100.1.1.1", false), ("128.0.0.0/1", "8000::", false),
    ])
    func `a block holds its addresses and no others`(block: String, address: String, expected: Bool) throws {
        #expect(try #require(AddressBlock(block)).contains(#require(IPAddress(address))) == expected)
    }

    @Test(arguments: [
        "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/0", "::/0", "10.0.0.1/8", "10.0.0.0/8/8", "10.0.0.0/-8",
        "10.0.0.0/+8",
        "10.0.0.0/8 ", "::1/129", "proxy.example/8", "10/8", "2001:db8::1/32", "1.2.3.4/0032",
    ])
    func `a slip is no block`(text: String) {
        #expect(AddressBlock(text) == nil)
    }

    private static let proxies = ["10.0.0.0/8", "2001:db8:ffff::/48"]

    private static func client(_ lines: [String], peer: String = "10.0.0.1") throws -> String {
        let head = RequestHead(
            method: .get, target: "/", fields: lines.map { (name: "X-Forwarded-For", value: $0) }, framing: .none)
        let proxies = TrustedProxies(try proxies.map { try #require(AddressBlock($0)) })
        return proxies.client(head.fields, peer: ClientAddress(address: peer, port: 1)).address
    }

    @Test(arguments: [
        (["192.0.2.7"], "192.0.2.7"),
        // The proxy appends; what comes before is what the client says of itself.
        (["1.1.1.1, 192.0.2.7"], "192.0.2.7"), (["10.0.0.9, 192.0.2.7"], "192.0.2.7"),
        (["nonsense, 192.0.2.7"], "192.0.2.7"),
        // Through two proxies, in one line or several.
        (["192.0.2.7, 10.0.0.2"], "192.0.2.7"), (["192.0.2.7", "10.0.0.2"], "192.0.2.7"),
        (["1.1.1.1", "192.0.2.7 ,\t10.0.0.2,10.0.0.3"], "192.0.2.7"),
        (["2001:db8::7, 2001:db8:ffff::1"], "2001:db8::7"),
        // With ports, as some proxies write them.
        (["192.0.2.7:50000"], "192.0.2.7"), (["[2001:db8::7]"], "2001:db8::7"), (["[2001:db8::7]:443"], "2001:db8::7"),
        (["::ffff:192.0.2.7"], "::ffff:192.0.2.7"),
        // Only proxies: the first of them asks.
        (["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
    ])
    func `the last address that is no proxy's asks`(lines: [String], expected: String) throws {
        #expect(try Self.client(lines) == expected)
    }

    @Test(arguments: [
        [], [""], [","], ["192.0.2.7,"], ["unknown"], ["192.0.2.7, unknown, 10.0.0.2"], ["192.0.2.7 10.0.0.2"],
        ["192.0.2"],
        ["192.0.2.7:"], ["192.0.2.7:123456"], ["[2001:db8::7"], ["[2001:db8::7]x"], ["[]"], ["\"192.0.2.7\""],
        ["for=192.0.2.7"],
        ["fe80::1%eth0"], ["_hidden"],
    ])
    func `what cannot be read leaves the peer`(lines: [String]) throws {
        #expect(try Self.client(lines) == "10.0.0.1")
    }

    @Test func `nobody else's word counts`() throws {
        #expect(try Self.client(["192.0.2.7"], peer: "192.0.2.99") == "192.0.2.99")
        #expect(try Self.client(["192.0.2.7"], peer: "2001:db8:1::1") == "2001:db8:1::1")
        #expect(try Self.client(["192.0.2.7"], peer: "2001:db8:ffff::1") == "192.0.2.7")
        let head = RequestHead(method: .get, target: "/", fields: [(name: "X-Forwarded-For", value: "1.1.1.1")])
        let peer = ClientAddress(address: "10.0.0.1", port: 1)
        #expect(TrustedProxies().client(head.fields, peer: peer) == peer)
    }
}
