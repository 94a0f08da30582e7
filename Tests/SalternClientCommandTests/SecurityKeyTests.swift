import Cryptography
import Foundation
import SalternClient
import Testing

@testable import SecurityKey

/// The parts of a security key's ceremonies that need no key.
struct SecurityKeyTests {
    @Test func `the salt of hmac-secret is that of the documents`() {
        let salt = ClientData.salt(of: Array("saltern-1 passkey".utf8))
        #expect(salt == SHA256.hash(Array("WebAuthn PRF\0saltern-1 passkey".utf8)).bytes)
    }

    @Test func `client data name ceremony, challenge and origin`() {
        let data = ClientData.bytes("webauthn.get", Base64URLBytes([0xFB, 0xFF]), site: "example.org")
        let expected =
            #"{"type":"webauthn.get","challenge":"-_8","origin":"https://example.org","crossOrigin":false}"#
        #expect(String(decoding: data, as: UTF8.self) == expected)
    }

    @Test func `authenticator data are unwrapped from CBOR`() throws {
        for count in [1, 23, 24, 255, 256, 4_000] {
            let content = SecureRandom.bytes(count)
            let head: [UInt8] =
                count < 24
                ? [0x40 + UInt8(count)]
                : count < 256 ? [0x58, UInt8(count)] : [0x59, UInt8(count >> 8), UInt8(count & 0xFF)]
            #expect(try ClientData.content(ofByteString: head + content) == content)
            #expect(throws: PasskeyError.failed) { try ClientData.content(ofByteString: head + content + [0]) }
            #expect(throws: PasskeyError.failed) { try ClientData.content(ofByteString: head + content.dropLast()) }
        }
        for malformed: [UInt8] in [[], [0x58], [0x59, 1], [0x60], [0xA0]] {
            #expect(throws: PasskeyError.failed) { try ClientData.content(ofByteString: malformed) }
        }
    }

    @Test func `without a key the answer says so`() async {
        let key = SecurityKey(pin: { SecureBytes(copying: [UInt8]()) }, onTouch: {})
        let options = try? SecurityKeyTests.options()
        await #expect(throws: PasskeyError.noAuthenticator) { _ = try await key.get(#require(options), prf: nil) }
    }

    private static func options() throws -> PasskeyRequestOptions {
        let text = #"{"rpId":"example.org","challenge":"AAAA","allowCredentials":[],"userVerification":"required"}"#
        return try JSONDecoder().decode(PasskeyRequestOptions.self, from: Data(text.utf8))
    }
}
