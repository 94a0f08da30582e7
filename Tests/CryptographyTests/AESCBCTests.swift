import Cryptography
import Testing

struct AESCBCTests {
    private func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex)) }

    // NIST SP 800-38A, F.2.5 (CBC-AES256.Encrypt), one block; PKCS #7 adds another.
    private static let key = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
    private static let vector = "000102030405060708090a0b0c0d0e0f"
    private static let plaintext = "6bc1bee22e409f96e93d7e117393172a"
    private static let firstBlock = "f58c4c04d6e5f1ba779eabfb5f7bfbd6"

    @Test func `encrypts what the standard says, and pads`() throws {
        let key = SecureBytes(copying: try bytes(Self.key))
        let sealed = try AESCBC.encrypt(try bytes(Self.plaintext), using: key, vector: try bytes(Self.vector))
        #expect(Hex.encode(sealed[..<16]) == Self.firstBlock)
        #expect(sealed.count == 32)
        #expect(
            try AESCBC.decrypt(sealed, using: key, vector: bytes(Self.vector))
                == SecureBytes(copying: bytes(Self.plaintext)))
    }

    @Test(arguments: [0, 1, 15, 16, 17, 1_000]) func `what is encrypted can be decrypted`(_ count: Int) throws {
        let key = SecureRandom.secureBytes(32)
        let vector = SecureRandom.bytes(16)
        let plaintext = SecureRandom.secureBytes(count)
        let sealed = try AESCBC.encrypt(plaintext, using: key, vector: vector)
        #expect(sealed.count == (count / 16 + 1) * 16)
        #expect(try AESCBC.decrypt(sealed, using: key, vector: vector) == plaintext)
    }

    /// In the first block a bit of the vector is a bit of the plaintext.
    @Test func `every byte of the padding counts`() throws {
        let key = SecureRandom.secureBytes(32)
        let vector = SecureRandom.bytes(16)
        let sealed = try AESCBC.encrypt([7], using: key, vector: vector)
        for position in 1..<16 {
            var changed = vector
            changed[position] ^= 1
            #expect(throws: AESCBC.Failure.wrongPadding) { try AESCBC.decrypt(sealed, using: key, vector: changed) }
        }
        for padding: UInt8 in [0, 17, 255] {
            var changed = vector
            changed[15] ^= 15 ^ padding
            #expect(throws: AESCBC.Failure.wrongPadding) { try AESCBC.decrypt(sealed, using: key, vector: changed) }
        }
    }

    @Test func `another key, vector or length is refused`() throws {
        let key = SecureRandom.secureBytes(32)
        let vector = SecureRandom.bytes(16)
        #expect(throws: AESCBC.Failure.wrongLength) { try AESCBC.decrypt([1, 2, 3], using: key, vector: vector) }
        #expect(throws: AESCBC.Failure.wrongLength) { try AESCBC.decrypt([UInt8](), using: key, vector: vector) }
        #expect(throws: AESCBC.Failure.wrongVectorLength) { try AESCBC.encrypt([1], using: key, vector: [1]) }
        #expect(throws: AESCBC.Failure.wrongKeyLength) {
            try AESCBC.encrypt([1], using: SecureRandom.secureBytes(16), vector: vector)
        }
        // The last block of zeros decrypts to noise; that it is valid padding happens once in 250 times.
        let results = (0..<64).map { _ in
            try? AESCBC.decrypt([UInt8](repeating: 0, count: 32), using: SecureRandom.secureBytes(32), vector: vector)
        }
        #expect(results.contains { $0 == nil })
    }
}
