import Cryptography
import Testing

@Suite struct ES256Tests {
    /// The example of RFC 7515, appendix A.3.
    private static let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
    private static let y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
    private static let d = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"
    private static let message =
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    private static let signature =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"

    private func key() throws -> P256.PrivateKey {
        let bytes =
            try [4] + Base64URL.decode(Self.x.utf8) + Base64URL.decode(Self.y.utf8) + Base64URL.decode(Self.d.utf8)
        return try P256.PrivateKey(SecureBytes(copying: bytes))
    }

    @Test func `the signature of RFC 7515 is valid, and a changed one is not`() throws {
        let publicKey = try key().publicKey
        let signature = try Base64URL.decode(Self.signature.utf8)
        #expect(ES256.isValid(signature, of: Self.message.utf8, by: publicKey))
        #expect(!ES256.isValid(signature, of: (Self.message + "x").utf8, by: publicKey))
        for index in [0, 31, 32, 63] {
            var changed = signature
            changed[index] ^= 1
            #expect(!ES256.isValid(changed, of: Self.message.utf8, by: publicKey))
        }
        #expect(!ES256.isValid(signature + [0], of: Self.message.utf8, by: publicKey))
        #expect(!ES256.isValid([UInt8](repeating: 0, count: 64), of: Self.message.utf8, by: publicKey))
        #expect(!ES256.isValid(signature, of: Self.message.utf8, by: try P256.PrivateKey.generate().publicKey))
    }

    @Test func `a signature has 64 bytes, also when r or s begins with zeros`() throws {
        let key = try ES256.SigningKey(try key())
        var shortest = 64
        for index in 0..<2_000 {
            let message = Array("message \(index)".utf8)
            let signature = try key.signature(of: message)
            #expect(signature.count == ES256.signatureByteCount)
            shortest = min(shortest, signature.prefix(32).drop { $0 == 0 }.count + 32)
            if index < 50 || signature[0] == 0 || signature[32] == 0 {
                #expect(ES256.isValid(signature, of: message, by: key.publicKey))
                #expect(key.isValid(signature, of: message))
                #expect(try ES256.VerifyingKey(key.publicKey).isValid(signature, of: message))
            }
        }
        #expect(shortest < 64)
    }
}
