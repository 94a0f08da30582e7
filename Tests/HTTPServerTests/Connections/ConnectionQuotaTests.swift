import HTTPCore
import Testing

@testable import HTTPServer

@Suite struct ConnectionQuotaTests {
    private func client(_ address: String) -> ClientAddress { ClientAddress(address: address, port: 1) }

    private var configuration: HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration()
        configuration.maximumConnections = 10
        configuration.maximumConnectionsPerAddress = 2
        return configuration
    }

    @Test func `an address has its share, a network of IPv6 has one`() {
        let quota = ConnectionQuota(configuration)
        for address in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::2"] {
            #expect(quota.open(from: client(address)) == .serve, "\(address)")
        }
        for address in ["192.0.2.1", "2001:db8::3"] {
            #expect(quota.open(from: client(address)) == .dropOfAddress, "\(address)")
        }
        #expect(quota.open(from: client("2001:db8:0:1::1")) == .serve)
        quota.close(from: client("192.0.2.1"))
        #expect(quota.open(from: client("192.0.2.1")) == .serve)
        #expect(quota.total == 5)
    }

    @Test func `a trusted proxy's connections count in all only`() throws {
        var configuration = configuration
        configuration.trustedProxies = TrustedProxies([try #require(AddressBlock("10.0.0.0/8"))])
        let quota = ConnectionQuota(configuration)
        for _ in 0..<10 { #expect(quota.open(from: client("10.0.0.1")) == .serve) }
        #expect(quota.open(from: client("10.0.0.1")) == .refusePolitely)
        for _ in 0..<11 { quota.close(from: client("10.0.0.1")) }
        #expect(quota.total == 0)
    }
}
