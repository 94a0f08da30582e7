internal import Cryptography
internal import HTTPCore
internal import Postgres

/// The client's 32-byte PBKDF2 output. The server receives nothing else of a password.
struct PasswordKey: Sendable {
    static let byteCount = 32

    private let bytes: SecureBytes

    /// Accepts bytes that can be the output of a key derivation function.
    ///
    /// - Throws: ``NotAStretchedKey`` for another length, for 32 equal bytes, and for printable ASCII with optional
    ///   zeros on either side, which is a truncated or padded password. A random key has that form with a probability
    ///   below 2·Σ (95/256)^k·(1/256)^(32-k) < 4·10^-14, and equal bytes with 256^-31.
    init(_ bytes: SecureBytes) throws(NotAStretchedKey) {
        guard bytes.count == Self.byteCount, !bytes.withUnsafeBytes(Self.looksLikeText) else {
            throw NotAStretchedKey()
        }
        self.bytes = bytes
    }

    /// Reads base64.
    init(json: JSONValue) throws {
        guard let decoded = Base64Text.decodeSecure(try json.text()) else { throw NotAStretchedKey() }
        try self.init(decoded)
    }

    /// SHA-256 of the key, which is stored and compared.
    var verifier: Verifier { Verifier(SHA256.hash(bytes)) }

    private static func looksLikeText(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if bytes.allSatisfy({ $0 == bytes[0] }) { return true }
        let isPadding: (UInt8) -> Bool = { $0 == 0 }
        let withoutTail = bytes.reversed().drop(while: isPadding)
        let withoutHead = bytes.drop(while: isPadding)
        return withoutTail.allSatisfy(isPrintable) || withoutHead.allSatisfy(isPrintable)
    }

    private static func isPrintable(_ byte: UInt8) -> Bool { (0x20..<0x7F).contains(byte) }
}

/// The error of bytes that are no password key.
struct NotAStretchedKey: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "not_a_stretched_key",
            detail: "A password key must be canonical base64 of the 32 bytes that PBKDF2-HMAC-SHA256 returns.")
    }
}

/// SHA-256 of a password key. Compared in constant time, never printed.
struct Verifier: StoredDigest {
    let digest: SHA256Digest

    /// Returns a verifier without a key. It is compared for unknown userids, so that the comparison always takes place.
    static func decoy() -> Verifier { Verifier(SHA256.hash(SecureRandom.bytes(32))) }
}
