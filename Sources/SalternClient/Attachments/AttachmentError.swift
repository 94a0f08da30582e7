/// Why an attachment was not stored or read.
public enum AttachmentError: Error, Sendable {
    /// The vault.
    case vault(VaultError)
    /// The source threw, or gave another number of bytes than was asked for.
    case sourceFailed
    /// The plan has no room for it. Nothing of it stays on the server, but for chunks that other versions have, or other
    /// devices. With ``PlanShortage/Limit/waitingBytes``: the server cannot be reached, and there is no room for content that
    /// waits on this device.
    case noRoom(PlanShortage)
    /// The server does not have a chunk that the manifest names.
    case missingChunk(ItemID)
    /// The server's bytes of a chunk do not open, or are those of another chunk.
    case damagedChunk(ItemID)
    /// The task was cancelled. What was sent under an id of the caller's stays, and is not sent again.
    case cancelled

    /// Stable, for scripts.
    public var code: String {
        switch self {
        case .vault: "vault"
        case .sourceFailed: "source_failed"
        case .noRoom: "no_room"
        case .missingChunk: "missing_chunk"
        case .damagedChunk: "damaged_chunk"
        case .cancelled: "cancelled"
        }
    }

    /// Whether it is so only because the plan is full.
    var isForWantOfRoom: Bool {
        if case .noRoom(let shortage) = self { shortage.limit != .waitingBytes } else { isRefusalForWantOfRoom }
    }

    /// Whether the server has said so when a chunk came.
    var isRefusalForWantOfRoom: Bool {
        if case .vault(.refused(let problem)) = self { problem.code == .quotaExceeded } else { false }
    }

    init(_ error: VaultError) {
        switch error {
        case .unavailable(.transport(.cancelled)): self = .cancelled
        case .noRoom(let shortage): self = .noRoom(shortage)
        default: self = .vault(error)
        }
    }
}
