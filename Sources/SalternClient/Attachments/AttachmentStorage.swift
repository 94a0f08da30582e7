/// The limits of attachments' chunks on a device, in sealed bytes.
///
/// ```swift
/// settings.attachments = AttachmentStorage(waitingByteLimit: 64 << 20, copiedByteLimit: 1 << 30)
/// ```
public struct AttachmentStorage: Sendable, Hashable {
    /// The limit of content that waits to be sent, because the server was unreachable when it was attached. With 0,
    /// nothing waits, and ``Vault/attach(_:id:properties:progress:)`` needs the server.
    public let waitingByteLimit: Int64
    /// The limit of copies of content that was attached or read on this device, for reading without network. The least
    /// recently used copies are removed first. With 0 there are no copies.
    public let copiedByteLimit: Int64

    /// Creates limits. A negative limit becomes 0.
    public init(waitingByteLimit: Int64 = 256 << 20, copiedByteLimit: Int64 = 256 << 20) {
        self.waitingByteLimit = max(waitingByteLimit, 0)
        self.copiedByteLimit = max(copiedByteLimit, 0)
    }
}

/// The sealed bytes of attachments' chunks on a device.
public struct AttachmentUsage: Sendable, Hashable {
    /// Content that waits to be sent.
    public let waitingByteCount: Int64
    /// Copies of content that the server has.
    public let copiedByteCount: Int64
}
