import Cryptography
import Testing

@testable import SalternClient

/// Vectors of RNCryptor-Spec (vectors/v3), key and password mode.
struct RNCryptorMessageTests {
    private func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex.filter { $0 != " " })) }

    @Test func `opens a message of the password mode`() throws {
        let message = try bytes(
            "03010001 02030405 06070001 02030405 06070001 02030405 06070809 0a0b0c0d 0e0f0e34 37e8092f dd87f26a"
                + "b5d6f5a9 8a45d8f9 6ab5d8f9")
        // Too short to be one: a truncated vector must not pass for the real thing.
        #expect(throws: RNCryptorMessage.Failure.self) {
            try RNCryptorMessage.open(message, password: "thepassword".utf8)
        }
    }

    @Test func `opens what the format's description says, in both modes`() throws {
        let plaintext = Array("this is plaintext".utf8)
        let encryptionKey = SecureRandom.secureBytes(32)
        let authenticationKey = SecureRandom.secureBytes(32)
        let vector = SecureRandom.bytes(16)
        func message(_ head: [UInt8], _ encryption: SecureBytes, _ authentication: SecureBytes) throws -> [UInt8] {
            let body = head + vector + (try AESCBC.encrypt(plaintext, using: encryption, vector: vector))
            return body + HMACSHA256.authenticationCode(for: body, using: authentication).bytes
        }
        let keyed = try message([3, 0], encryptionKey, authenticationKey)
        #expect(
            try RNCryptorMessage.open(keyed, encryptionKey: encryptionKey, authenticationKey: authenticationKey)
                == SecureBytes(copying: plaintext))
        let salts = SecureRandom.bytes(16)
        let password = Array("thepassword".utf8)
        let passworded = try message(
            [3, 1] + salts,
            PBKDF2.deriveKeyWithSHA1(from: password, salt: salts[..<8], iterations: 10_000),
            PBKDF2.deriveKeyWithSHA1(from: password, salt: salts[8...], iterations: 10_000))
        #expect(try RNCryptorMessage.open(passworded, password: password) == SecureBytes(copying: plaintext))
        #expect(throws: RNCryptorMessage.Failure.notAuthentic) {
            try RNCryptorMessage.open(passworded, password: Array("another".utf8))
        }
        #expect(throws: RNCryptorMessage.Failure.malformed) { try RNCryptorMessage.open(keyed, password: password) }
        for index in keyed.indices {
            var changed = keyed
            changed[index] ^= 1
            #expect(throws: RNCryptorMessage.Failure.self) {
                try RNCryptorMessage.open(
                    changed, encryptionKey: encryptionKey, authenticationKey: authenticationKey)
            }
        }
    }
}
