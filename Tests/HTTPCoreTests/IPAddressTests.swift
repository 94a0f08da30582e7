import Glibc
import HTTPCore
import Testing

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("0.0.0.0", "::ffff:0:0"), ("192.0.2.1", "::ffff:192.0.2.1"), ("192.0.2.1", "::FFFF:C000:201"),
        ("::1", "0:0:0:0:0:0:0:1"), ("2001:db8::", "2001:0db8:0:0:0:0:0:0"), ("1::8", "1:0:0:0:0:0:0:8"),
        ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
    ])
    func `two ways to write an address are the same address`(one: String, other: String) {
        #expect(IPAddress(one) != nil)
        #expect(IPAddress(one) == IPAddress(other))
    }

    @Test(arguments: [
        "", ".", ":", ":::", "1", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1.2.3.256", "01.2.3.4", "1.2.3.4 ",
        "a.b.c.d",
        "1.2.3.-4", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "1:::2", ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7:",
        "12345::",
        "g::", "1:2:3:4::5:6:7:8", "::1.2.3", "::1.2.3.4:5", "1.2.3.4::", "1:2:3:4:5:6:7:1.2.3.4", "fe80::1%eth0",
        "[::1]",
        "::1/128", "١.2.3.4",
    ])
    func `anything else is none`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func `a /64 of IPv6 is one network, an address of IPv4 is one`() throws {
        func network(_ text: String) throws -> UInt64 { try #require(IPAddress(text)).network }
        #expect(try network("2001:db8:1:2::3") == network("2001:db8:1:2:ffff::1"))
        #expect(try network("2001:db8:1:2::3") != network("2001:db8:1:3::3"))
        #expect(try network("192.0.2.1") != network("192.0.2.2"))
        #expect(try network("192.0.2.1") == network("::ffff:192.0.2.1"))
        #expect(try network("::1") != network("0.0.0.1"))
    }

    /// The C library as the judge, over texts that are nearly addresses.
    @Test func `it reads what inet_pton reads, and nothing else`() {
        var random = SystemRandomNumberGenerator()
        let seeds = [
            "192.0.2.1", "255.255.255.255", "::", "::1", "2001:db8::1:0:0:1", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4", "fe80::", "1::", "abcd:ef01:2345:6789:abcd:ef01:2345:6789",
        ]
        let alphabet = Array("0123456789abcdefABCDEFg.:: /".utf8)
        var accepted = 0
        for round in 0..<60_000 {
            var text = Array(seeds[round % seeds.count].utf8)
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let byte = alphabet.randomElement(using: &random) ?? 0x30
                let place = Int.random(in: 0...text.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: text.insert(byte, at: place)
                case 1 where place < text.count: text.remove(at: place)
                default: if place < text.count { text[place] = byte }
                }
            }
            let string = String(decoding: text, as: UTF8.self)
            #expect(IPAddress(string).map(\.bytes) == Self.judged(string), "\(string)")
            if IPAddress(string) != nil { accepted += 1 }
        }
        #expect(accepted > 10_000)
    }

    private static func judged(_ text: String) -> [UInt8]? {
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            return [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + withUnsafeBytes(of: four) { Array($0) }
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        return withUnsafeBytes(of: six) { Array($0) }
    }
}

extension IPAddress {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: bits.bigEndian) { Array($0) } }
}
