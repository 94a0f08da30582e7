internal import Cryptography

/// A signature of 64 bytes, r ‖ s, with 0 < r < n and 0 < s ≤ n / 2 for the order n of P-256.
///
/// Of the two signatures (r, s) and (r, n − s), which are both valid, only the one with the low s exists here.
public struct VaultSignature: Hashable, Sendable {
    /// r ‖ s.
    public let bytes: [UInt8]

    static let byteCount = 64
    /// The order of P-256 (SP 800-186 section 3.2.1.3), and half of it, rounded down.
    private static let order = constant("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
    private static let halfOrder = constant("7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8")

    private static func constant(_ text: String) -> [UInt8] {
        guard let bytes = Hex.decode(text) else { preconditionFailure("the constants are hexadecimal") }
        return bytes
    }

    /// Reads a signature.
    /// - Returns: nil for another length, and for numbers out of range.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        let r = bytes.prefix(32)
        let s = bytes.dropFirst(32)
        guard r.contains(where: { $0 != 0 }), r.lexicographicallyPrecedes(Self.order), s.contains(where: { $0 != 0 }),
            !Self.halfOrder.lexicographicallyPrecedes(s)
        else { return nil }
        self.bytes = [UInt8](bytes)
    }

    /// Signs a text that begins with a label.
    static func sign(_ text: [UInt8], with key: ES256.SigningKey) throws(P256.Failure) -> Self {
        var bytes = try key.signature(of: text)
        if halfOrder.lexicographicallyPrecedes(bytes[32...]) { negate(&bytes) }
        guard let signature = Self(bytes) else { preconditionFailure("r and s are numbers of the group") }
        return signature
    }

    /// Returns true when the private half of `key` has signed a text that begins with a label.
    func isValid(_ text: [UInt8], by key: ES256.VerifyingKey) -> Bool { key.isValid(bytes, of: text) }

    /// Replaces s by n − s.
    private static func negate(_ signature: inout [UInt8]) {
        var borrow = 0
        for index in (0..<32).reversed() {
            let difference = Int(order[index]) - Int(signature[32 + index]) - borrow
            signature[32 + index] = UInt8(truncatingIfNeeded: difference)
            borrow = difference < 0 ? 1 : 0
        }
    }
}
