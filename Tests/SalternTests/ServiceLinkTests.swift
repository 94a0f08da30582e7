import Testing

@testable import saltern

@Suite struct ServiceLinkTests {
    @Test(arguments: [
        ("SALTERN_PORT", "tcp://10.43.0.7:8443"), ("SALTERN_SERVICE_HOST", "10.43.0.7"),
        ("SALTERN_SERVICE_PORT", "8443"), ("SALTERN_SERVICE_PORT_HTTPS", "8443"),
        ("SALTERN_SERVICE_PORT_NAME", "8443"), ("SALTERN_PORT_8443_TCP", "tcp://[fd00::7]:8443"),
        ("SALTERN_PORT_8443_TCP_PROTO", "tcp"), ("SALTERN_PORT_8443_TCP_PORT", "8443"),
        ("SALTERN_PORT_8443_TCP_ADDR", "fd00::7"), ("SALTERN_METRICS_SERVICE_HOST", "10.43.0.8"),
        ("SALTERN_METRICS_PORT", "tcp://10.43.0.8:9100"), ("SALTERN_DB_2_PORT_5432_UDP_PROTO", "udp"),
        ("SALTERN_NAME", "/web/saltern"),
    ])
    func `what a platform writes for a service of the name is ignored`(name: String, value: String) throws {
        try Settings([name: value]).finish()
    }

    @Test(arguments: [
        ("SALTERN_PORT", "8443"), ("SALTERN_SERVICE_HOST", "api.example.org"), ("SALTERN_SERVICE_PORT", "https"),
        ("SALTERN_HOST", "10.43.0.7"), ("SALTERN_PORT", ""), ("SALTERN_PORT_8443", "tcp://10.43.0.7:8443"),
        ("SALTERN_LISTEN_PORT", "8443"), ("SALTERN_NAME", "Notes"), ("SALTERN_PORT_8443_TCP_PROTO", "tls"),
    ])
    func `what looks alike and was made up by an operator is refused`(name: String, value: String) {
        #expect(throws: (any Error).self) { try Settings([name: value]).finish() }
    }
}
