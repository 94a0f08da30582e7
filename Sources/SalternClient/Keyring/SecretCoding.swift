internal import Cryptography

/// Concatenates secrets, and zeroes the buffers that it outgrows.
struct SecretWriter {
    private(set) var bytes = SecureBytes(copying: [UInt8]())

    mutating func write(_ source: some ByteSource) {
        let before = bytes
        bytes = source.withContiguousBytes { added in
            SecureBytes(count: before.count + added.count) { target in
                before.withUnsafeBytes { target.copyMemory(from: $0) }
                UnsafeMutableRawBufferPointer(rebasing: target[before.count...]).copyMemory(from: added)
            }
        }
    }
}

/// Reads concatenated secrets.
struct SecretReader {
    private let source: SecureBytes
    private var position = 0

    init(_ source: SecureBytes) { self.source = source }

    var isAtEnd: Bool { position == source.count }

    mutating func secret(_ count: Int) -> SecureBytes? {
        guard count >= 0, source.count - position >= count else { return nil }
        defer { position += count }
        return source.withUnsafeBytes {
            SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[position..<position + count]))
        }
    }

    mutating func bytes(_ count: Int) -> [UInt8]? { secret(count)?.withUnsafeBytes { [UInt8]($0) } }

    mutating func byte() -> UInt8? { bytes(1)?.first }

    /// Reads a big-endian number of `count` bytes, at most eight.
    mutating func number(_ count: Int) -> UInt64? { bytes(count)?.reduce(0) { $0 << 8 | UInt64($1) } }
}
