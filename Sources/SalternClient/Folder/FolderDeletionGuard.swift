/// Holds deletions of files back when there are suddenly many: a disk that is not there, or another device gone wrong.
struct FolderDeletionGuard {
    private static let limit = 25

    /// How many files both sides had.
    let total: Int
    var isOff = false
    private var here = 0
    private var there = 0

    init(total: Int, isOff: Bool) {
        self.total = total
        self.isOff = isOff
    }

    /// What may be done, and how many deletions may not.
    mutating func permit(_ actions: [FolderAction]) -> (permitted: [FolderAction], held: HeldDeletions) {
        if isOff { return (actions, HeldDeletions()) }
        let deletedHere = actions.count { if case .deleteHere = $0 { true } else { false } }
        let deletedThere = actions.count { if case .deleteThere = $0 { true } else { false } }
        var held = HeldDeletions()
        if isTooMany(here + deletedHere) { held.here = deletedHere } else { here += deletedHere }
        if isTooMany(there + deletedThere) { held.there = deletedThere } else { there += deletedThere }
        let permitted = actions.filter { action in
            switch action {
            case .deleteHere: held.here == 0
            case .deleteThere: held.there == 0
            default: true
            }
        }
        return (permitted, held)
    }

    private func isTooMany(_ count: Int) -> Bool {
        count > Self.limit || (total >= 10 && count * 3 > total)
    }
}

/// Deletions that wait for somebody to agree.
public struct HeldDeletions: Hashable, Sendable {
    /// Deleted elsewhere, still in the folder.
    public var here = 0
    /// Missing in the folder, still in the vault.
    public var there = 0

    public var isEmpty: Bool { here == 0 && there == 0 }
}
