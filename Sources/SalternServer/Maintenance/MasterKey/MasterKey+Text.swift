public import Cryptography

/// The text of a master key's file: one key a line in base64, the active one first. Empty lines and lines that begin
/// with `#` are ignored.
extension MasterKey {
    private static let lineEnd = UInt8(ascii: "\n")
    private static let comment = UInt8(ascii: "#")

    /// Reads the text of a file.
    public init(text: SecureBytes) throws(MasterKeyError) {
        var keys: [Key] = []
        try text.withUnsafeBytes { bytes throws(MasterKeyError) in
            var number = 0
            var rest = bytes[...]
            while !rest.isEmpty {
                number += 1
                let line = rest.prefix { $0 != Self.lineEnd }
                rest = rest[line.endIndex...].dropFirst()
                guard let key = try Self.key(UnsafeRawBufferPointer(rebasing: line), number) else { continue }
                guard !keys.contains(where: { $0.id == key.id }) else { throw .repeatedKey(line: number) }
                keys.append(key)
            }
        }
        guard let active = keys.first else { throw .noKey }
        guard keys.count <= Self.maximumKeys else { throw .tooManyKeys }
        self.init(active: active, older: Array(keys.dropFirst()))
    }

    /// The text that ``init(text:)`` reads, with a heading.
    public var text: SecureBytes {
        let heading = Array("# Saltern's master key, the active one first. Keep it apart from the database.\n".utf8)
        let lineByteCount = Base64.encodedCount(Self.keyByteCount) + 1
        return SecureBytes(count: heading.count + keys.count * lineByteCount) { buffer in
            buffer.copyBytes(from: heading)
            for (index, key) in keys.enumerated() {
                let start = heading.count + index * lineByteCount
                Base64.encode(key.secret, into: UnsafeMutableRawBufferPointer(rebasing: buffer[start...]))
                buffer[start + lineByteCount - 1] = Self.lineEnd
            }
        }
    }

    /// Returns the key of a line. Nil for an ignored line.
    private static func key(_ line: UnsafeRawBufferPointer, _ number: Int) throws(MasterKeyError) -> Key? {
        guard let first = line.first, first != comment else { return nil }
        guard let secret = try? Base64.decodeSecure(line), secret.count == keyByteCount else {
            throw .invalidLine(number)
        }
        return Key(secret)
    }
}
