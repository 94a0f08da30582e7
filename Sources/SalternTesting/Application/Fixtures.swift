internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Values for the requests of tests.
public enum Fixtures {
    /// Returns a unique userid.
    public static func userid() -> String { "user-\(Hex.encode(SecureRandom.bytes(6)))@example.org" }

    /// Returns base64 of a password key that depends on the seed alone.
    public static func passwordKey(_ seed: String) -> String {
        Base64.encodeToString(SHA256.hash(Array(seed.utf8)))
    }

    /// Returns a random UUID in its canonical form.
    public static func uuid() -> String { UUID(bytes: SecureRandom.bytes(16)).map(\.description) ?? "" }

    /// Returns base64 of random bytes, as many as AES-GCM with a 12-byte nonce returns for `plaintext` bytes.
    public static func sealed(plaintext: Int = 64) -> String {
        Base64.encodeToString(SecureRandom.bytes(12 + plaintext + 16))
    }

    /// Returns base64 of an RNCryptor message in key mode with `blocks` blocks of ciphertext.
    public static func rncryptor(blocks: Int = 4) -> String {
        Base64.encodeToString([3, 0] + SecureRandom.bytes(16 + blocks * 16 + 32))
    }
}
