internal import Cryptography
internal import Postgres

/// A code on paper that stands in for the authenticator app once: 20 base32 digits, 100 random bits.
struct SecondFactorRecoveryCode: Sendable {
    static let digitCount = 20
    /// How many a person gets.
    static let setSize = 10
    private static let groupSize = 4

    /// ASCII, of the base32 alphabet.
    private let digits: SecureBytes

    static func random() -> SecondFactorRecoveryCode {
        let random = SecureRandom.secureBytes(digitCount)
        let digits = SecureBytes(count: digitCount) { digits in
            // 256 is a multiple of 32, so every digit is as likely as any other.
            random.withUnsafeBytes { random in
                for (index, byte) in random.enumerated() { digits[index] = Base32.alphabet[Int(byte & 31)] }
            }
        }
        return SecondFactorRecoveryCode(digits: digits)
    }

    /// A whole new set.
    static func randomSet() -> [SecondFactorRecoveryCode] { (0..<setSize).map { _ in random() } }

    private init(digits: SecureBytes) {
        self.digits = digits
    }

    /// Takes 20 digits without separators, in either case; 0, 1 and 8, which are no digits, are taken for the letters
    /// that they look like. Nil for anything else.
    init?(_ text: [UInt8]) {
        guard text.count == Self.digitCount else { return nil }
        let digits = text.map(Self.digit)
        guard digits.allSatisfy(Base32.alphabet.contains) else { return nil }
        self.digits = SecureBytes(copying: digits)
    }

    private static func digit(_ typed: UInt8) -> UInt8 {
        switch typed {
        case UInt8(ascii: "0"): UInt8(ascii: "O")
        case UInt8(ascii: "1"): UInt8(ascii: "I")
        case UInt8(ascii: "8"): UInt8(ascii: "B")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): typed - 0x20
        default: typed
        }
    }

    /// The code as its owner gets it, once: `ABCD-EFGH-…`.
    var text: String {
        digits.withUnsafeBytes { digits in
            stride(from: 0, to: digits.count, by: Self.groupSize)
                .map { String(decoding: digits[$0..<$0 + Self.groupSize], as: UTF8.self) }
                .joined(separator: "-")
        }
    }

    /// What is stored: SHA-256 of the account's identifier and the digits, so that nobody can look for the codes of many
    /// accounts at once.
    func hash(for account: AccountID) -> SecondFactorRecoveryCodeHash {
        var hash = SHA256.Incremental()
        hash.update(account.uuid.bytes)
        hash.update(digits)
        return SecondFactorRecoveryCodeHash(hash.finalize())
    }
}

/// What is stored of a recovery code.
struct SecondFactorRecoveryCodeHash: Sendable, Hashable {
    let digest: SHA256Digest

    init(_ digest: SHA256Digest) {
        self.digest = digest
    }
}

extension SecondFactorRecoveryCodeHash: PostgresValue {
    static var postgresType: PostgresType { .bytea }

    func encode(to writer: inout ByteWriter) { digest.withUnsafeBytes { writer.write($0) } }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> SecondFactorRecoveryCodeHash? {
        bytes.flatMap { SHA256Digest($0) }.map(SecondFactorRecoveryCodeHash.init)
    }
}

extension SecondFactorRecoveryCodeHash: PostgresArrayElement {
    static var postgresArrayType: PostgresType { .byteaArray }
}
