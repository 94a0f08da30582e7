extension VaultError {
    /// True when the cause is only that the plan is full.
    var isForWantOfRoom: Bool {
        if case .noRoom(let shortage) = self { shortage.limit != .waitingBytes } else { isRefusalForWantOfRoom }
    }

    /// True when the server returned this error for a chunk.
    var isRefusalForWantOfRoom: Bool {
        if case .refused(let problem) = self { problem.code == .quotaExceeded } else { false }
    }

    /// True when a later download can continue with the pieces that have arrived.
    var keepsArrived: Bool {
        switch self {
        case .sourceFailed, .noRoom, .missingChunk, .damagedChunk: false
        default: true
        }
    }

    /// The error of a call for a content as a whole: ``unreadable`` instead of the detailed reason.
    var ofContent: VaultError {
        switch self {
        case .sourceFailed, .missingChunk, .damagedChunk: .unreadable
        default: self
        }
    }
}
