/// The limits of what a device keeps of the chunks of attachments, in sealed bytes.
public struct AttachmentStorage: Sendable, Hashable {
    /// The limit of content that waits to be sent, because the server could not be reached when it was attached. 0: nothing
    /// waits, and ``Vault/attach(_:id:properties:progress:)`` needs the server.
    public let waitingByteLimit: Int64
    /// The limit of copies of content that was attached or read on this device, for reading without network. Copies that were
    /// not used for longest are removed first. 0: no copies.
    public let copiedByteLimit: Int64

    /// - Parameters: A negative limit is 0.
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

extension Vault {
    /// The sealed bytes of attachments' chunks on this device.
    ///
    /// ```swift
    /// let usage = try await vault.attachmentUsage()
    /// print("\(usage.waitingByteCount) bytes wait")
    /// ```
    public func attachmentUsage() throws(VaultError) -> AttachmentUsage {
        try stored {
            AttachmentUsage(
                waitingByteCount: try store.waitingByteCount(), copiedByteCount: try store.copiedByteCount())
        }
    }

    /// Removes the copies of content that the server has. What waits to be sent stays.
    ///
    /// ```swift
    /// try await vault.removeAttachmentCopies()
    /// ```
    public func removeAttachmentCopies() throws(VaultError) {
        try stored { try store.removeCopies(downTo: 0) }
    }
}
