public import Cryptography
internal import HTTPCore
internal import Postgres

/// Reads and writes the file of signing keys. Each line has the time of a key's first use, and base64 of its point and
/// number. Lines are in order of time. Empty lines and lines that begin with `#` are skipped. A line may end
/// with CR LF.
extension SigningKeys {
    private static let heading = "# Saltern's keys for identity tokens, with the first use of each.\n"
    /// The size of `2026-02-01T12:30:00Z` and a space.
    private static let timeByteCount = 20

    /// Reads the text of a file.
    public init(text: SecureBytes) throws(SigningKeyError) {
        var keys: [SigningKey] = []
        try text.withUnsafeBytes { bytes throws(SigningKeyError) in
            var number = 0
            var rest = bytes[...]
            while !rest.isEmpty {
                number += 1
                let line = rest.prefix { $0 != ASCII.lineFeed }
                rest = rest[line.endIndex...].dropFirst()
                let content = line.last == ASCII.carriageReturn ? line.dropLast() : line
                guard let first = content.first, first != UInt8(ascii: "#") else { continue }
                guard let key = Self.key(content), key.usableFrom > keys.last?.usableFrom ?? .distantPast else {
                    throw .invalidLine(number)
                }
                guard !keys.contains(where: { $0.id == key.id }) else { throw .repeatedKey(number) }
                keys.append(key)
            }
        }
        guard !keys.isEmpty else { throw .noKey }
        guard keys.count <= Self.maximumCount else { throw .tooManyKeys }
        self.init(ordered: keys)
    }

    private static func key(_ line: Slice<UnsafeRawBufferPointer>) -> SigningKey? {
        guard let time = UTCTimestamp(rfc3339: line.prefix(timeByteCount)),
            line.dropFirst(timeByteCount).first == ASCII.space,
            let number = try? Base64.decodeSecure(UnsafeRawBufferPointer(rebasing: line.dropFirst(timeByteCount + 1))),
            let key = try? P256.PrivateKey(number)
        else { return nil }
        return try? SigningKey(key, usableFrom: Timestamp(unixMicroseconds: time.microsecondsSinceEpoch))
    }

    /// The text that ``init(text:)`` reads.
    public var text: SecureBytes {
        let keyByteCount = Base64.encodedCount(P256.PrivateKey.byteCount)
        let lineByteCount = Self.timeByteCount + 1 + keyByteCount + 1
        let heading = Array(Self.heading.utf8)
        return SecureBytes(count: heading.count + keys.count * lineByteCount) { buffer in
            buffer.copyBytes(from: heading)
            for (index, key) in keys.enumerated() {
                let line = UnsafeMutableRawBufferPointer(rebasing: buffer[(heading.count + index * lineByteCount)...])
                var time: [UInt8] = []
                UTCTimestamp(microsecondsSinceEpoch: key.usableFrom.unixMicroseconds)
                    .append(to: &time, fractionDigits: 0)
                line.copyBytes(from: time + [ASCII.space])
                Base64.encode(
                    key.stored.bytes, into: UnsafeMutableRawBufferPointer(rebasing: line[(Self.timeByteCount + 1)...]))
                line[lineByteCount - 1] = ASCII.lineFeed
            }
        }
    }
}
