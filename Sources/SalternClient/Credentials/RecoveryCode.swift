internal import Cryptography

/// The code that a person prints: 24 random characters of Crockford's base32 (120 bits) and a check character.
///
/// The check is Luhn's for 32 digits. It detects every single wrong character and nearly every swap of two neighbours
/// before a request is sent.
///
/// Example: "Password and recovery" in docs/app.md.
public struct RecoveryCode: Sendable {
    /// 25 ASCII characters.
    let characters: SecureBytes

    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let digitCount = 24
    /// The iterations of the recovery key, a constant of this kit that the server does not send.
    static let iterations = 100_000

    /// Generates a code.
    public static func random() -> RecoveryCode {
        let random = SecureRandom.secureBytes(digitCount)
        let characters = SecureBytes(count: digitCount + 1) { code in
            random.withUnsafeBytes { random in
                for index in 0..<digitCount { code[index] = random[index] & 31 }
            }
            code[digitCount] = checkDigit(UnsafeRawBufferPointer(rebasing: code[..<digitCount]))
            for index in code.indices { code[index] = alphabet[Int(code[index])] }
        }
        return RecoveryCode(characters: characters)
    }

    /// Parses a code that a person has typed. Case, spaces and hyphens of any kind are ignored; O is read as 0, I and L
    /// as 1 (``PastedText``).
    /// - Returns: nil for other text, and for a code with a typing error.
    public init?(_ text: String) {
        let digits = PastedText.code(text).utf8.map { Self.value($0) ?? 32 }
        guard digits.count == Self.digitCount + 1, digits.allSatisfy({ $0 < 32 }),
            digits.withUnsafeBytes({ Self.checkDigit(UnsafeRawBufferPointer(rebasing: $0[..<Self.digitCount])) })
                == digits[Self.digitCount]
        else { return nil }
        characters = SecureBytes(copying: digits.map { Self.alphabet[Int($0)] })
    }

    private init(characters: SecureBytes) { self.characters = characters }

    /// The printed form: groups of five characters.
    public var text: String {
        characters.withUnsafeBytes { bytes in
            stride(from: 0, to: bytes.count, by: 5)
                .map { String(decoding: bytes[$0..<min($0 + 5, bytes.count)], as: UTF8.self) }
                .joined(separator: "-")
        }
    }

    /// Derives the recovery key for the server, which is the first block, and the key of the recovery keyring, the
    /// second.
    func stretched(by rule: StretchingRule) async -> StretchedPassword {
        StretchedPassword(await rule.derivation(characters, rule.saltPrefix + "recovery", Self.iterations))
    }

    private static func value(_ character: UInt8) -> UInt8? {
        switch character & 0xdf {
        case UInt8(ascii: "O"): return 0
        case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
        default: break
        }
        let upper = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(character) ? character & 0xdf : character
        return alphabet.firstIndex(of: upper).map(UInt8.init)
    }

    /// Luhn's algorithm modulo 32.
    private static func checkDigit(_ digits: UnsafeRawBufferPointer) -> UInt8 {
        var sum = 0
        for (index, digit) in digits.reversed().enumerated() {
            let weighted = Int(digit) * (index % 2 == 0 ? 2 : 1)
            sum += weighted / 32 + weighted % 32
        }
        return UInt8((32 - sum % 32) % 32)
    }
}
