import Cryptography
import Testing

@testable import SalternServer

@Suite struct WebhookSignatureTests {
    private static let secret = WebhookSecret(SecureBytes(copying: [UInt8](0..<32)))

    @Test func `an attempt has the fields of Standard Webhooks`() {
        // The code was computed with Python's hmac module.
        let fields = WebhookSignature.fields(
            id: "msg_000102030405060708090a0b0c0d0e0f", at: 1_767_225_600,
            body: Array(#"{"type":"account.created"}"#.utf8),
            secrets: [Self.secret])
        #expect(fields.map(\.name) == ["webhook-id", "webhook-timestamp", "webhook-signature"])
        #expect(
            fields.map(\.value) == [
                "msg_000102030405060708090a0b0c0d0e0f", "1767225600", "v1,Z4k1hYZ3zMBu/V5OaD59UdjDezpKUbSRGTgTXDB7fIw=",
            ])
    }

    @Test func `while a secret rotates, both sign`() {
        let other = WebhookSecret.random()
        func signature(_ secrets: [WebhookSecret]) -> String {
            WebhookSignature.fields(id: "msg_1", at: 1, body: [1, 2], secrets: secrets)[2].value
        }
        #expect(signature([other, Self.secret]) == "\(signature([other])) \(signature([Self.secret]))")
    }

    @Test func `a secret is 32 bytes in base64 behind its prefix`() {
        #expect(Self.secret.text == "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
    }
}

@Suite struct DestinationURLTests {
    @Test(arguments: [
        "https://example.com", "https://example.com/", "https://example.com:8443/hook?a=b", "https://[2001:db8::1]/x",
        "https://10.0.0.1/%20",
    ])
    func `an https URL is accepted`(_ text: String) { #expect(DestinationURL(text)?.description == text) }

    @Test(arguments: [
        "http://example.com/", "https://", "https://ada@example.com/", "https://example.com/#part",
        "https://example.com:0/",
        "https://example.com:70000/", "https://example.com/a b", "https://example.com\\@evil.example/",
        "HTTPS://example.com/",
        "file:///etc/passwd", "https://exämple.com/", "https://example.com/\r\nX: y",
    ])
    func `anything else is rejected`(_ text: String) { #expect(DestinationURL(text) == nil) }
}
