import Testing
import WebAuthn

struct ClientDataTests {
    private static func read(_ text: String) throws(WebAuthnFailure) -> ClientData {
        try ClientData([UInt8](text.utf8), ceremony: .assertion)
    }

    @Test(arguments: [
        #"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org"}"#,
        #"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org","crossOrigin":false}"#,
        #"{"origin":"https://example.org","tokenBinding":{"status":"supported"},"type":"webauthn.get","challenge":"AAEC"}"#,
        #"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org","other":[1,{"a":null}]}"#,
        #"{"type":"webauthn\u002eget","challenge":"AAEC","origin":"https:\/\/example.org"}"#,
    ])
    func `unknown members and other orders are allowed`(text: String) throws {
        let data = try Self.read(text)
        #expect(data.challenge == [0, 1, 2])
        #expect(data.origin == "https://example.org")
    }

    @Test(arguments: [
        "", "{", "[]", "null", "\u{FEFF}{}", "{}x", #"{"type":"webauthn.get"}"#,
        #"{"type":"webauthn.get","challenge":"AAEC"}"#,
        #"{"type":"webauthn.get","origin":"https://example.org"}"#,
        #"{"challenge":"AAEC","origin":"https://example.org"}"#,
        #"{"type":1,"challenge":"AAEC","origin":"https://example.org"}"#,
        #"{"type":"webauthn.get","challenge":null,"origin":"https://example.org"}"#,
        #"{"type":"webauthn.get","challenge":"AAEC","origin":["https://example.org"]}"#,
        // Base64 with padding, with another alphabet, with bits too many and with an impossible length.
        #"{"type":"webauthn.get","challenge":"AAE=","origin":"https://example.org"}"#,
        #"{"type":"webauthn.get","challenge":"+/+/","origin":"https://example.org"}"#,
        #"{"type":"webauthn.get","challenge":"AAF","origin":"https://example.org"}"#,
        #"{"type":"webauthn.get","challenge":"AAECA","origin":"https://example.org"}"#,
        // Names that come twice, also with escapes.
        #"{"type":"webauthn.get","type":"webauthn.get","challenge":"AAEC","origin":"https://example.org"}"#,
        #"{"type":"webauthn.get","challenge":"AAEC","ch\u0061llenge":"AAEC","origin":"https://example.org"}"#,
        #"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org","o":1,"o":1}"#,
        #"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org","crossOrigin":"false"}"#,
        #"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org","crossOrigin":null}"#,
        #"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org","a":[[[[[[[[[]]]]]]]]]}"#,
    ])
    func `malformed client data are refused`(text: String) {
        #expect(throws: WebAuthnFailure.clientDataMalformed) { try Self.read(text) }
    }

    @Test func `a frame of another origin is refused`() {
        for more in [#""crossOrigin":true"#, #""topOrigin":"https://example.org""#, #""topOrigin":null"#] {
            #expect(throws: WebAuthnFailure.crossOrigin) {
                try Self.read(#"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org",\#(more)}"#)
            }
        }
    }

    @Test func `the length is limited`() {
        let text = #"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org"}"#
        let blanks = String(repeating: " ", count: ClientData.byteLimit - text.utf8.count)
        #expect(throws: Never.self) { try Self.read(text + blanks) }
        #expect(throws: WebAuthnFailure.clientDataTooLong) { try Self.read(text + blanks + " ") }
    }

    @Test func `bytes that are no UTF-8 are refused`() {
        let text = [UInt8](#"{"type":"webauthn.get","challenge":"AAEC","origin":"a"}"#.utf8)
        let broken = text.map { $0 == UInt8(ascii: "a") ? 0xFF : $0 }
        #expect(throws: WebAuthnFailure.clientDataMalformed) { try ClientData(broken, ceremony: .assertion) }
    }
}
