import HTTPCore
import Testing

/// Headers of the PROXY protocol, version 2, as section 2.2 of its specification writes them.
@Suite struct ProxyHeaderTests {
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]

    static func header(_ command: UInt8, _ family: UInt8, _ rest: [UInt8]) -> [UInt8] {
        signature + [command, family, UInt8(rest.count >> 8), UInt8(rest.count & 0xFF)] + rest
    }

    /// 192.0.2.7 from port 50,000 to 198.51.100.1, port 443.
    private static let ipv4: [UInt8] = [192, 0, 2, 7, 198, 51, 100, 1, 0xC3, 0x50, 1, 0xBB]
    private static let ipv6: [UInt8] =
        [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7] + [UInt8](repeating: 1, count: 16)
        + [0xC3, 0x50, 1, 0xBB]

    @Test func `a client of IPv4 and one of IPv6 are read, with their ports`() throws {
        let four = try #require(ProxyHeader(Self.header(0x21, 0x11, Self.ipv4)))
        #expect(four.client == ClientAddress(address: "192.0.2.7", port: 50_000))
        let six = try #require(ProxyHeader(Self.header(0x21, 0x21, Self.ipv6)))
        #expect(six.client == ClientAddress(address: "2001:db8::7", port: 50_000))
    }

    @Test func `an IPv4 address that is mapped into IPv6 is the IPv4 address`() throws {
        let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, 7]
        let header = try #require(ProxyHeader(Self.header(0x21, 0x21, mapped + mapped + [0xC3, 0x50, 1, 0xBB])))
        #expect(header.client?.address == "192.0.2.7")
        #expect(header.client?.ip == IPAddress("192.0.2.7"))
    }

    @Test func `what follows the addresses is ignored`() throws {
        // PP2_TYPE_AUTHORITY, and bytes that are no TLV.
        let header = try #require(ProxyHeader(Self.header(0x21, 0x11, Self.ipv4 + [2, 0, 1, 0x61, 0xFF, 0xFF])))
        #expect(header.client?.address == "192.0.2.7")
        let longest = Self.ipv4 + [UInt8](repeating: 4, count: ProxyHeader.restLimit - 12)
        #expect(ProxyHeader(Self.header(0x21, 0x11, longest))?.client?.address == "192.0.2.7")
    }

    @Test(
        arguments: [
            (0x20, 0x00, []), (0x20, 0x11, ipv4), (0x20, 0x21, []), (0x20, 0x31, [1, 2, 3]), (0x21, 0x00, []),
            (0x21, 0x00, [9, 9, 9]),
        ] as [(UInt8, UInt8, [UInt8])])
    func `a proxy that speaks for itself, or does not know the client, names none`(
        command: UInt8, family: UInt8, rest: [UInt8]
    ) throws {
        #expect(try #require(ProxyHeader(Self.header(command, family, rest))).client == nil)
    }

    @Test(
        arguments: [
            // Version 1 and 3, other commands, UDP, Unix sockets, unknown families, addresses that are cut off.
            (0x11, 0x11, ipv4), (0x31, 0x11, ipv4), (0x22, 0x11, ipv4), (0x2F, 0x11, ipv4), (0x21, 0x12, ipv4),
            (0x21, 0x22, ipv6), (0x21, 0x31, ipv6), (0x21, 0x41, ipv4), (0x21, 0x01, ipv4), (0x21, 0x10, ipv4),
            (0x21, 0x11, Array(ipv4.dropLast())), (0x21, 0x21, Array(ipv6.dropLast())), (0x21, 0x21, ipv4),
            (0x21, 0x11, []),
            (0x21, 0x11, [UInt8](repeating: 0, count: ProxyHeader.restLimit + 1)),
            (0x20, 0x00, [UInt8](repeating: 0, count: 65_535)),
        ] as [(UInt8, UInt8, [UInt8])])
    func `anything else is none`(command: UInt8, family: UInt8, rest: [UInt8]) {
        let bytes = Self.header(command, family, rest)
        #expect(ProxyHeader(bytes) == nil)
        #expect(ProxyHeader.restLength(prefix: bytes.prefix(16)) == nil)
    }

    @Test func `a header of another length than it says is none, nor is one with another signature`() {
        let whole = Self.header(0x21, 0x11, Self.ipv4)
        for count in 0..<whole.count { #expect(ProxyHeader(Array(whole.prefix(count))) == nil) }
        #expect(ProxyHeader(whole + [0]) == nil)
        for index in 0..<12 {
            var bytes = whole
            bytes[index] ^= 0x20
            #expect(ProxyHeader(bytes) == nil)
            #expect(!ProxyHeader.mayBegin(with: bytes))
        }
        for count in 0...whole.count { #expect(ProxyHeader.mayBegin(with: whole.prefix(count))) }
        #expect(!ProxyHeader.mayBegin(with: Array("PROXY TCP4 192.0.2.7 198.51.100.1 50000 443\r\n".utf8)))
        #expect(!ProxyHeader.mayBegin(with: [0x16, 3, 1] as [UInt8]))
    }

    @Test(arguments: [
        ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("0.0.0.0", "0.0.0.0"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"), ("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"),
    ])
    func `an address is written as RFC 5952 has it`(text: String, written: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == written)
        #expect(IPAddress(address.description) == address)
    }
}
