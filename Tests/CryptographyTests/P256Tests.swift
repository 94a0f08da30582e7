import Cryptography
import Testing

struct P256Tests {
    // NIST CAVP, KAS ECC CDH primitive, P-256, count 0.
    private static let peer =
        "04700c48f77f56584c5cc632ca65640db91b6bacce3a4df6b42ce7cc838833d287"
        + "db71e509e3fd9b060ddb20ba5c51dcc5948d46fbf640dfe0441782cab85fa4ac"
    private static let pair =
        "04ead218590119e8876b29146ff89ca61770c4edbbf97d38ce385ed281d8a6b230"
        + "28af61281fd35e2fa7002523acc85a429cb06ee6648325389f59edfce1405141"
        + "7d7dc5f71eb29ddaf80d6214632eeae03d9058af1fb6d22ed80badb62bc1a534"
    private static let secret = "46fc62106420ff012e54a434fbdd2d25ccc5852060561e68040dd7778997bd7b"

    @Test func `agrees on what the standard says`() throws {
        let pair = try P256.PrivateKey(SecureBytes(copying: try #require(Hex.decode(Self.pair))))
        let peer = try P256.PublicKey(try #require(Hex.decode(Self.peer)))
        #expect(Hex.encode(try pair.sharedSecret(with: peer)) == Self.secret)
    }

    @Test func `both sides get the same secret`() throws {
        let one = try P256.PrivateKey.generate()
        let other = try P256.PrivateKey(P256.PrivateKey.generate().bytes)
        #expect(try one.sharedSecret(with: other.publicKey) == other.sharedSecret(with: one.publicKey))
        #expect(one.bytes.count == P256.PrivateKey.byteCount)
    }

    @Test func `a number has one point, and numbers outside of the group have none`() throws {
        let pair = try P256.PrivateKey(SecureBytes(copying: try #require(Hex.decode(Self.pair))))
        let number = SecureBytes(copying: try #require(Hex.decode(Self.pair))[65...])
        #expect(try P256.PrivateKey(number: number).bytes == pair.bytes)
        let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"
        for wrong in [order, String(repeating: "0", count: 64), String(repeating: "f", count: 64), "01"] {
            let number = SecureBytes(copying: try #require(Hex.decode(wrong)))
            #expect(throws: P256.Failure.notAKey) { try P256.PrivateKey(number: number) }
        }
    }

    @Test func `what is no point of the curve is refused`() throws {
        var point = try P256.PrivateKey.generate().publicKey.bytes
        point[64] ^= 1
        #expect(throws: P256.Failure.notAKey) { try P256.PublicKey(point) }
        #expect(throws: P256.Failure.notAKey) { try P256.PublicKey([4]) }
        #expect(throws: P256.Failure.notAKey) { try P256.PublicKey([UInt8](repeating: 0, count: 65)) }
    }

    @Test func `a number that does not belong to its point is refused`() throws {
        let one = try P256.PrivateKey.generate().bytes.withUnsafeBytes { [UInt8]($0) }
        let other = try P256.PrivateKey.generate().bytes.withUnsafeBytes { [UInt8]($0) }
        #expect(throws: P256.Failure.notAKey) {
            try P256.PrivateKey(SecureBytes(copying: one[..<65] + other[65...]))
        }
    }
}
