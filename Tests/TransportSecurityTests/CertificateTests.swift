import Cryptography
import Testing
import TransportSecurity

struct CertificateTests {
    private static let day: Int64 = 86400

    @Test func `a certificate has the fields that were asked for`() throws {
        let key = try PrivateKey.generate()
        let hosts = try [Host("api.example.com"), Host("192.0.2.7"), Host("2001:db8::1"), Host("*.example.org")]
        let now: Int64 = 1_800_000_000
        let certificate = try SelfSignedCertificate.make(hosts: hosts, key: key, now: now)

        #expect(certificate.subject == "CN=api.example.com")
        #expect(certificate.hosts == hosts)
        #expect(certificate.isSelfIssued)
        #expect(certificate.matches(key))
        #expect(try certificate.pin == key.pin())
        #expect(try certificate.subjectPublicKeyInfo == key.subjectPublicKeyInfo())
        #expect(certificate.notBefore < now)
        #expect(now - certificate.notBefore <= Self.day)
        #expect(certificate.notAfter - certificate.notBefore == 397 * Self.day)
    }

    @Test func `serial numbers are random, positive and of 128 bits`() throws {
        let key = try PrivateKey.generate()
        let serials = try (0..<20).map { _ in
            try SelfSignedCertificate.make(hosts: [Host("localhost")], key: key).serialNumber
        }
        #expect(Set(serials).count == 20)
        #expect(serials.allSatisfy { $0.count == 16 && $0[0] < 0x80 })
    }

    @Test func `PEM and DER give the certificate back`() throws {
        let identity = try TestIdentity()
        let certificate = identity.certificate
        #expect(try Certificate(der: certificate.der) == certificate)
        #expect(try Certificate.chain(pem: certificate.pem) == [certificate])
        #expect(try Certificate(der: certificate.der) != TestIdentity().certificate)
    }

    @Test func `a chain keeps its order, and text between is ignored`() throws {
        let first = try TestIdentity().certificate
        let second = try TestIdentity().certificate
        let pem = Array("leaf\n".utf8) + first.pem + Array("\nissuer\n".utf8) + second.pem + Array("end\n".utf8)
        #expect(try Certificate.chain(pem: pem) == [first, second])
    }

    @Test func `a chain that is broken is refused as a whole`() throws {
        let pem = try TestIdentity().certificate.pem
        let broken = Array("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8)
        for text: [UInt8] in [pem + broken, broken, pem.dropLast(40)] {
            let error = failure { () throws(CertificateError) in try Certificate.chain(pem: text) }
            #expect(error?.code == "invalid_certificate")
        }
        for text in ["", "no certificate"] {
            let error = failure { () throws(CertificateError) in try Certificate.chain(pem: text.utf8) }
            #expect(error == .noCertificate)
        }
    }

    @Test func `bytes that are not exactly one certificate are refused`() throws {
        let der = try TestIdentity().certificate.der
        for bytes: [UInt8] in [[], [1, 2, 3], der.dropLast(), der + [0]] {
            let error = failure { () throws(CertificateError) in try Certificate(der: bytes) }
            #expect(error?.code == "invalid_certificate")
        }
    }

    @Test func `a key of another certificate is refused with OpenSSL's reasons`() throws {
        let certificate = try TestIdentity().certificate
        let error = failure { () throws(CertificateError) in
            try TLSIdentity(chain: [certificate], key: PrivateKey.generate())
        }
        guard case .keyDoesNotMatchCertificate(let reason) = error else {
            Issue.record("the key was not refused, but \(String(describing: error))")
            return
        }
        #expect(reason.description.contains("key values mismatch"))
    }

    @Test func `an empty chain is refused`() throws {
        let error = failure { () throws(CertificateError) in try TLSIdentity(chain: [], key: .generate()) }
        #expect(error == .noCertificate)
    }

    @Test func `a certificate without hosts is refused`() {
        let error = failure { () throws(CertificateError) in
            try SelfSignedCertificate.make(hosts: [], key: .generate())
        }
        #expect(error == .invalidHost(""))
    }

    @Test func `a first host that is too long for a common name is in the SAN all the same`() throws {
        let long = try Host(String(repeating: "a", count: 60) + ".example.com")
        let short = try Host("short.example.com")
        let key = try PrivateKey.generate()
        let both = try SelfSignedCertificate.make(hosts: [long, short], key: key)
        #expect(both.subject == "CN=short.example.com")
        #expect(both.hosts == [long, short])
        let alone = try SelfSignedCertificate.make(hosts: [long], key: key)
        #expect(alone.subject == "CN=saltern")
        #expect(alone.hosts == [long])
    }
}

struct HostTests {
    @Test(arguments: ["localhost", "a.example.com", "*.example.com", "xn--mnchen-3ya.de", "1.example", "a-b.c"])
    func `names are names`(_ text: String) throws {
        #expect(try Host(text) == .name(text))
        #expect(try Host(text.uppercased()) == .name(text))
    }

    @Test(arguments: [
        ("127.0.0.1", [127, 0, 0, 1]), ("::1", [UInt8](repeating: 0, count: 15) + [1]),
        ("2001:db8::1", [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1]),
    ])
    func `addresses are addresses`(_ text: String, _ bytes: [UInt8]) throws {
        let host = try Host(text)
        #expect(host == .address(bytes))
        #expect("\(host)" == text)
    }

    @Test(arguments: [
        "", ".", "a..b", ".a", "a.", "-a.com", "a-.com", "a_b.com", "a b", "a,DNS:evil.com", "a\nb", "1.2.3",
        "256.1.1.1",
        "12", "*", "*.com", "a.*.com", "münchen.de", "a\u{0}b", "[::1]", "a:443", "https://a",
    ])
    func `anything else is refused`(_ text: String) {
        #expect(failure { () throws(CertificateError) in try Host(text) } == .invalidHost(text))
    }

    @Test func `lengths beyond what DNS allows are refused`() {
        let label = String(repeating: "a", count: 63)
        #expect(failure { () throws(CertificateError) in try Host(label + ".com") } == nil)
        #expect(failure { () throws(CertificateError) in try Host(label + "a.com") } != nil)
        let long = [label, label, label, label].joined(separator: ".")
        #expect(failure { () throws(CertificateError) in try Host(long) } != nil)
    }
}

struct SPKIPinTests {
    @Test func `a pin reads back from both of its forms`() throws {
        let pin = try PrivateKey.generate().pin()
        #expect(pin.description == "sha256//" + pin.base64)
        #expect(SPKIPin(pin.description) == pin)
        #expect(SPKIPin(pin.base64) == pin)
    }

    @Test(arguments: ["", "sha256//", "sha256//AAAA", "sha256/AAAA", "sha1//AAAA", "no pin"])
    func `anything else is no pin`(_ text: String) {
        #expect(SPKIPin(text) == nil)
    }
}
