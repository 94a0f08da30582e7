public import Cryptography

/// The source of an attachment's content, read piece by piece, so that it is never in memory as a whole.
///
/// ```swift
/// let camera = try AttachmentSource(file: file)
/// note.photo = try await vault.attach(camera) { show($0.byteCount) }
/// ```
public struct AttachmentSource: Sendable {
    /// The length of the content, in bytes.
    public let byteCount: Int64
    let read: @Sendable (_ offset: Int64, _ count: Int) throws -> SecureBytes

    /// Creates a source from a function.
    /// - Parameter read: Returns exactly `count` bytes from `offset` on, or throws.
    public init(byteCount: Int64, read: @escaping @Sendable (_ offset: Int64, _ count: Int) throws -> SecureBytes) {
        self.byteCount = byteCount
        self.read = read
    }

    /// Creates a source from content in memory.
    public init(_ content: SecureBytes) {
        self.init(byteCount: Int64(content.count)) { offset, count in
            content.withUnsafeBytes { bytes in
                SecureBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[Int(offset)...].prefix(count)))
            }
        }
    }

    /// Reads a part of the content, whole.
    func piece(_ offset: Int64, _ count: Int) throws(VaultError) -> SecureBytes {
        guard let content = try? read(offset, count), content.count == count else { throw .sourceFailed }
        return content
    }
}

/// The progress of an attachment that is sent or read.
public struct AttachmentProgress: Hashable, Sendable {
    /// The bytes that are complete, including those that were present before.
    public let byteCount: Int64
    /// The length of the content, in bytes.
    public let total: Int64
}
