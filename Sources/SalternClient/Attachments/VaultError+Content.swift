extension VaultError {
    /// Whether it is so only because the plan is full.
    var isForWantOfRoom: Bool {
        if case .noRoom(let shortage) = self { shortage.limit != .waitingBytes } else { isRefusalForWantOfRoom }
    }

    /// Whether the server has said so when a chunk came.
    var isRefusalForWantOfRoom: Bool {
        if case .refused(let problem) = self { problem.code == .quotaExceeded } else { false }
    }

    /// Whether a later download can go on with what has arrived.
    var keepsArrived: Bool {
        switch self {
        case .sourceFailed, .noRoom, .missingChunk, .damagedChunk: false
        default: true
        }
    }

    /// The error of a call that gives or takes content as a whole: ``unreadable`` in place of the reason.
    var ofContent: VaultError {
        switch self {
        case .sourceFailed, .missingChunk, .damagedChunk: .unreadable
        default: self
        }
    }
}
