public import Cryptography

/// Where an attachment's content comes from, piece by piece, so that it is never in memory as a whole.
public struct AttachmentSource: Sendable {
    public let byteCount: Int64
    let read: @Sendable (_ offset: Int64, _ count: Int) throws -> SecureBytes

    /// - Parameter read: Returns exactly `count` bytes from `offset` on, or throws.
    public init(byteCount: Int64, read: @escaping @Sendable (_ offset: Int64, _ count: Int) throws -> SecureBytes) {
        self.byteCount = byteCount
        self.read = read
    }

    /// Content that is in memory.
    public init(_ content: SecureBytes) {
        self.init(byteCount: Int64(content.count)) { offset, count in
            content.withUnsafeBytes { bytes in
                SecureBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[Int(offset)...].prefix(count)))
            }
        }
    }
}

/// How far an attachment has come.
public struct AttachmentProgress: Hashable, Sendable {
    /// What is done, or was there already.
    public let byteCount: Int64
    public let total: Int64
}
