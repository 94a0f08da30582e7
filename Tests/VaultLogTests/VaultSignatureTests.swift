import Cryptography
import Testing

@testable import VaultLog

struct VaultSignatureTests {
    private static let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"
    private static let half = "7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8"
    private static let overHalf = "7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a9"
    private static let one = String(repeating: "0", count: 63) + "1"
    private static let zero = String(repeating: "0", count: 64)

    @Test(arguments: [
        (one, one, true), (one, half, true), (one, overHalf, false), (zero, one, false), (one, zero, false),
        (order, one, false), (one, order, false), (String(order.dropLast()) + "0", half, true),
    ])
    func `r and s have bounds`(_ r: String, _ s: String, _ isValid: Bool) throws {
        #expect((VaultSignature(try #require(Hex.decode(r + s))) != nil) == isValid)
    }

    @Test func `signatures have 64 bytes`() {
        #expect(VaultSignature([UInt8](repeating: 1, count: 63)) == nil)
        #expect(VaultSignature([UInt8](repeating: 1, count: 65)) == nil)
    }

    @Test func `every signature is low, and its high twin is none`() throws {
        let key = try ES256.SigningKey(.generate())
        let verifying = try ES256.VerifyingKey(key.publicKey)
        for index in UInt8.min..<100 {
            let signature = try VaultSignature.sign([index], with: key)
            #expect(signature.isValid([index], by: verifying))
            #expect(!signature.isValid([index, 0], by: verifying))
            let twin = Self.twin(signature)
            // ECDSA itself accepts the twin.
            #expect(key.isValid(twin, of: [index]))
            #expect(VaultSignature(twin) == nil)
        }
    }

    @Test func `an entry with a high signature is malformed`() throws {
        let entry = try TestVault().entries[0]
        let twin = entry.text + Self.twin(entry.signature)
        #expect(throws: Entry.Malformation.malformed) { try Entry(twin) }
    }

    /// r ‖ n − s.
    private static func twin(_ signature: VaultSignature) -> [UInt8] {
        var borrow = 0
        var bytes = signature.bytes
        for (index, digit) in Hex.decode(order).known.enumerated().reversed() {
            let difference = Int(digit) - Int(bytes[32 + index]) - borrow
            bytes[32 + index] = UInt8(truncatingIfNeeded: difference)
            borrow = difference < 0 ? 1 : 0
        }
        return bytes
    }
}
