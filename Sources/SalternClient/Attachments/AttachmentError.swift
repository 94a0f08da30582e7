/// Why an attachment was not stored or read.
public enum AttachmentError: Error, Sendable {
    /// The vault.
    case vault(VaultError)
    /// The source threw, or gave another number of bytes than was asked for.
    case sourceFailed
    /// The plan allows so little in an item that no chunk fits.
    case planTooSmall
    /// The server does not have a chunk that the manifest names.
    case missingChunk(ItemID)
    /// What the server gave for a chunk does not open, or is another one.
    case damagedChunk(ItemID)
    /// The task was cancelled. What was sent stays, and is not sent again.
    case cancelled

    /// Stable, for scripts.
    public var code: String {
        switch self {
        case .vault: "vault"
        case .sourceFailed: "source_failed"
        case .planTooSmall: "plan_too_small"
        case .missingChunk: "missing_chunk"
        case .damagedChunk: "damaged_chunk"
        case .cancelled: "cancelled"
        }
    }

    init(_ error: VaultError) {
        if case .unavailable(.transport(.cancelled)) = error { self = .cancelled } else { self = .vault(error) }
    }
}
