internal import Cryptography
internal import Foundation

/// JSON with secrets that leaves no copy of them in memory that is not zeroed.
///
/// Foundation's encoder and decoder use memory that is not zeroed. They receive a placeholder for each secret. The
/// secret itself is only copied between the JSON text and ``SecureBytes``.
enum SecretJSON {
    // MARK: Encoding

    /// Returns the JSON of a value. Each ``SecretBytes`` and each ``Token`` is written into the result directly.
    static func encode(_ value: some Encodable, with encoder: JSONEncoder) throws -> SecureBytes {
        let placeholders = Placeholders()
        encoder.userInfo[Placeholders.key] = placeholders
        var text = try encoder.encode(value)
        defer { text.resetBytes(in: text.indices) }
        return placeholders.fill(text)
    }

    /// The secrets of one JSON text, each with a placeholder of the same length. The placeholder has 128 random bits,
    /// so the text contains it only once.
    final class Placeholders: Sendable {
        static let key = CodingUserInfoKey.named("saltern.placeholders")
        private let prefix = Hex.encode(SecureRandom.bytes(16))
        private static let digits = 8
        private let secrets = Locked<[SecureBytes]>([])

        /// Returns the placeholder of a secret.
        /// - Parameter text: The content of the JSON string, already escaped.
        func add(_ text: SecureBytes) -> String {
            let number = secrets.withLock { secrets in
                secrets.append(text)
                return String(secrets.count - 1)
            }
            return prefix + String(repeating: "0", count: Self.digits - number.utf8.count) + number
        }

        fileprivate func fill(_ text: Data) -> SecureBytes {
            let secrets = secrets.withLock { $0 }
            if secrets.isEmpty { return text.withUnsafeBytes { SecureBytes(copying: $0) } }
            var places: [(range: Range<Int>, secret: SecureBytes)] = []
            var position = text.startIndex
            while let found = text.range(of: Data(prefix.utf8), in: position..<text.endIndex) {
                position = found.upperBound + Self.digits
                guard let number = Int(String(decoding: text[found.upperBound..<position], as: UTF8.self)),
                    secrets.indices.contains(number)
                else { preconditionFailure("a placeholder has the number of its secret") }
                places.append((found.lowerBound..<position, secrets[number]))
            }
            let count = places.reduce(text.count) { $0 - $1.range.count + $1.secret.count }
            return text.withUnsafeBytes { text in
                SecureBytes(count: count) { target in
                    var (source, written) = (0, 0)
                    func write(_ bytes: UnsafeRawBufferPointer) {
                        UnsafeMutableRawBufferPointer(rebasing: target[written...]).copyMemory(from: bytes)
                        written += bytes.count
                    }
                    for (range, secret) in places {
                        write(UnsafeRawBufferPointer(rebasing: text[source..<range.lowerBound]))
                        secret.withUnsafeBytes { write($0) }
                        source = range.upperBound
                    }
                    write(UnsafeRawBufferPointer(rebasing: text[source...]))
                }
            }
        }
    }

    // MARK: Decoding

    /// The members of replies whose values are tokens.
    static let secretMembers = ["token", "deviceToken", "manageToken"]

    /// The secrets that were removed from a JSON text.
    struct Taken: Sendable {
        static let key = CodingUserInfoKey.named("saltern.taken")
        fileprivate var secrets: [SecureBytes] = []

        /// Returns the secret of a placeholder; nil for other text.
        func secret(_ placeholder: String) -> SecureBytes? {
            guard let number = Int(placeholder), secrets.indices.contains(number) else { return nil }
            return secrets[number]
        }
    }

    /// Moves the secrets out of a JSON text. A number of the same length replaces each.
    /// - Parameter members: The names of members whose values are secret.
    static func take(from text: inout [UInt8], members: [String] = secretMembers) -> Taken {
        text.withUnsafeMutableBytes { text in
            var taken = Taken()
            var name: UnsafeMutableRawBufferPointer?
            var position = 0
            while position < text.count {
                guard text[position] == UInt8(ascii: "\"") else {
                    position += 1
                    continue
                }
                let start = position + 1
                position = start
                var isEscaped = false
                while position < text.count, text[position] != UInt8(ascii: "\"") {
                    if text[position] == UInt8(ascii: "\\") {
                        isEscaped = true
                        position += 1
                    }
                    position += 1
                }
                guard position < text.count else { break }
                let string = UnsafeMutableRawBufferPointer(rebasing: text[start..<position])
                position += 1
                let isName = text[position...].first { !isSpace($0) } == UInt8(ascii: ":")
                if isName {
                    name = string
                    continue
                }
                let isSecret = name.map { name in members.contains { $0.utf8.elementsEqual(name) } } ?? false
                name = nil
                let number = Array(String(taken.secrets.count).utf8)
                guard isSecret, !isEscaped, string.count >= number.count else { continue }
                taken.secrets.append(SecureBytes(copying: UnsafeRawBufferPointer(string)))
                string.initializeMemory(as: UInt8.self, repeating: UInt8(ascii: "0"))
                UnsafeMutableRawBufferPointer(rebasing: string[(string.count - number.count)...]).copyBytes(
                    from: number)
            }
            return taken
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0a, 0x0d].contains(byte) }
}

/// A reply with tokens, which are removed from its JSON before it is decoded.
protocol HoldsTokens: Decodable {}

extension RegistrationReply: HoldsTokens {}
extension LoginReply: HoldsTokens {}
extension PasskeyLoginReply: HoldsTokens {}
extension RecoveryReply: HoldsTokens {}
extension CredentialReply: HoldsTokens {}
extension RotationCommitReply: HoldsTokens {}
extension ShareHeader: HoldsTokens {}

extension CodingUserInfoKey {
    fileprivate static func named(_ name: String) -> CodingUserInfoKey {
        guard let key = CodingUserInfoKey(rawValue: name) else { preconditionFailure("every text is a key") }
        return key
    }
}

/// The bounds of a reply's JSON, checked before it is decoded. The decoder takes up to 48 bytes of memory for each
/// value. Without bounds, a hostile server could exhaust the memory by a reply of allowed length.
enum JSONBounds {
    /// The limit of nested arrays and objects.
    static let depthLimit = 64

    /// Returns the limit of values in a text. Honest replies have one value for 20 bytes or more; short ones may have
    /// many.
    static func valueLimit(_ byteCount: Int) -> Int { 65_536 + byteCount / 16 }

    /// Checks that a text is within the bounds. Such a text can still be invalid JSON.
    static func include(_ text: [UInt8]) -> Bool {
        text.withUnsafeBytes { text in
            guard let start = text.baseAddress else { return true }
            // The decoder also reads UTF-16, in which every second byte of plain text is zero.
            if memchr(start, 0, text.count) != nil { return false }
            let limit = valueLimit(text.count)
            var (position, depth, count) = (0, 0, 0)
            while position < text.count {
                switch text[position] {
                case UInt8(ascii: "\""):
                    guard let end = end(ofString: position + 1, text) else { return false }
                    position = end
                case UInt8(ascii: "["), UInt8(ascii: "{"):
                    depth += 1
                    count += 1
                case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
                case UInt8(ascii: ","): count += 1
                default: break
                }
                if depth > depthLimit || count > limit { return false }
                position += 1
            }
            return true
        }
    }

    /// Returns the position of the quotation mark that ends a string.
    private static func end(ofString start: Int, _ text: UnsafeRawBufferPointer) -> Int? {
        guard let base = text.baseAddress else { return nil }
        var position = start
        while position < text.count, let found = memchr(base + position, 0x22, text.count - position) {
            let end = UnsafeRawPointer(found) - base
            var escapes = end
            while escapes > position, text[escapes - 1] == UInt8(ascii: "\\") { escapes -= 1 }
            if (end - escapes).isMultiple(of: 2) { return end }
            position = end + 1
        }
        return nil
    }
}
