internal import Cryptography

/// Reads a binary layout from its start. Numbers are big-endian.
struct ByteReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    /// Returns the next bytes, or nil when fewer are left.
    mutating func take(_ count: Int) -> [UInt8]? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return [UInt8](rest.prefix(count))
    }

    mutating func number<Number: FixedWidthInteger & UnsignedInteger>(_ type: Number.Type = Number.self) -> Number? {
        take(Number.bitWidth / 8)?.reduce(0) { $0 << 8 | Number($1) }
    }

    mutating func id<Subject>(_ type: Identifier<Subject>.Type = Identifier<Subject>.self) -> Identifier<Subject>? {
        take(Identifier<Subject>.byteCount).flatMap { Identifier($0) }
    }

    mutating func publicKey() -> P256.PublicKey? {
        take(P256.PublicKey.byteCount).flatMap { try? P256.PublicKey($0) }
    }

    mutating func hash() -> EntryHash? { take(SHA256Digest.byteCount).flatMap { EntryHash($0) } }

    mutating func signature() -> VaultSignature? { take(VaultSignature.byteCount).flatMap { VaultSignature($0) } }

    mutating func head() -> Head? {
        guard let number = number(UInt64.self).flatMap({ EntryNumber($0) }), let hash = hash() else { return nil }
        return Head(number: number, hash: hash)
    }
}

extension FixedWidthInteger {
    /// The bytes, the most significant first.
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }
}

extension SecureBytes {
    /// Concatenates parts without a copy outside of secret memory.
    init(concatenating parts: [any ByteSource]) {
        let total = parts.reduce(0) { sum, part in sum + part.withContiguousBytes { $0.count } }
        self.init(count: total) { buffer in
            var start = 0
            for part in parts {
                part.withContiguousBytes { bytes in
                    UnsafeMutableRawBufferPointer(rebasing: buffer[start...]).copyMemory(from: bytes)
                    start += bytes.count
                }
            }
        }
    }

    /// Copies a range.
    func slice(_ range: Range<Int>) -> SecureBytes {
        withUnsafeBytes { SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    /// Copies a range that is not secret.
    func open(_ range: Range<Int>) -> [UInt8] { withUnsafeBytes { [UInt8]($0[range]) } }
}
