import Testing
import WebAuthn

struct RelyingPartyTests {
    private static let hash = "android:apk-key-hash:" + String(repeating: "A", count: 43)

    @Test(arguments: [
        ("example.org", ["https://example.org"]),
        ("example.org", ["https://example.org", "https://app.example.org", "https://a.b.example.org:8443", hash]),
        ("a-1.example.org", ["https://a-1.example.org"]),
        ("example.org", [hash]),
        ("localhost", ["http://localhost:8080", "https://localhost", "http://a.localhost"]),
    ])
    func `its own origins are accepted`(id: String, origins: [String]) throws {
        #expect(try RelyingParty(id: id, origins: Set(origins)).origins == Set(origins))
    }

    @Test(arguments: [
        "", "example", "Example.org", "example.org.", ".example.org", "example..org", "-a.org", "a-.org", "127.0.0.1",
        "[::1]", "https://example.org", "example.org:443", "exämple.org", "example.org/", "*.example.org",
        String(repeating: "a", count: 64) + ".org",
    ])
    func `an id that is no domain name is refused`(id: String) {
        #expect(throws: RelyingParty.Failure.invalidID) { try RelyingParty(id: id, origins: ["https://example.org"]) }
    }

    @Test(arguments: [
        "", "example.org", "http://example.org", "https://example.org/", "https://example.org:443",
        "https://example.org:",
        "https://example.org:0", "https://example.org:08443", "https://example.org:70000", "https://Example.org",
        "https://user@example.org", "https://example.org?a", "https://", "ios:bundle-id:org.example", "null",
        "android:apk-key-hash:",
        "android:apk-key-hash:AAAA", hash + "A", hash + "=",
    ])
    func `other texts than origins are refused`(origin: String) {
        #expect(throws: RelyingParty.Failure.invalidOrigin(origin)) {
            try RelyingParty(id: "example.org", origins: [origin])
        }
    }

    @Test(arguments: [
        "https://example.com", "https://notexample.org", "https://org.example", "https://example.org.evil.net",
    ])
    func `a host that is not below the id is refused`(origin: String) {
        #expect(throws: RelyingParty.Failure.foreignOrigin(origin)) {
            try RelyingParty(id: "example.org", origins: ["https://example.org", origin])
        }
    }

    @Test func `no origins are refused`() {
        #expect(throws: RelyingParty.Failure.noOrigins) { try RelyingParty(id: "example.org", origins: []) }
    }
}
