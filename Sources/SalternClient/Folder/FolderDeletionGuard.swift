/// Holds deletions of files back when there are suddenly many, for example of a missing disk or a faulty device.
///
/// Deletions of the last hour are counted together, over all rounds. While some wait, all of that direction wait, until
/// the user has approved or none is left. Emptying a file counts as a deletion. A file whose content the other side has
/// under another name does not count.
struct FolderDeletionGuard {
    private static let limit = 25

    struct Direction {
        /// True when the user has approved all of them.
        var isAgreed = false
        /// The number of files that the deletions of the last hour have removed.
        var recent = 0
        /// True when some were held in the previous round.
        var isHolding = false
    }

    /// The number of files that both sides had at the beginning of the round.
    let total: Int
    private var carriedOut: [DeletionDirection: Int] = [:]
    private let directions: [DeletionDirection: Direction]

    init(total: Int, _ directions: [DeletionDirection: Direction] = [:]) {
        self.total = total
        self.directions = directions
    }

    /// Divides the actions of one pass.
    /// - Returns: The permitted actions, the held actions, and the directions with permitted deletions that the user
    ///   has not approved.
    mutating func permit(
        _ actions: [FolderAction], _ view: FolderView = FolderView()
    ) -> (
        permitted: [FolderAction], held: [DeletionDirection: [FolderAction]],
        noted: Set<DeletionDirection>
    ) {
        let kept = KeptContents(view)
        var deletions: [DeletionDirection: [FolderAction]] = [:]
        for action in actions {
            if let direction = action.deletion(in: view, kept) {
                deletions[direction, default: []].append(action)
            }
        }
        var held: [DeletionDirection: [FolderAction]] = [:]
        var noted: Set<DeletionDirection> = []
        for (name, waiting) in deletions {
            let direction = directions[name] ?? Direction()
            if direction.isAgreed { continue }
            let count = carriedOut[name, default: 0] + waiting.count
            if direction.isHolding || isTooMany(direction.recent + count, of: total + direction.recent) {
                held[name] = waiting
            } else {
                carriedOut[name] = count
                noted.insert(name)
            }
        }
        let waiting = Set(held.values.joined())
        return (actions.filter { !waiting.contains($0) }, held, noted)
    }

    private func isTooMany(_ count: Int, of total: Int) -> Bool {
        count > Self.limit || (total >= 10 && count * 3 > total)
    }
}

/// The contents that each side keeps.
private struct KeptContents {
    private var here: Set<[UInt8]> = []
    private var there: Set<[UInt8]> = []

    init(_ view: FolderView) {
        here = Set(view.local.values.map(\.digest)).union(view.keptOutside)
        there = Set(view.remote.values.map(\.content.digest)).union(view.keptOutside)
    }

    func has(_ content: FileContent, _ side: DeletionDirection) -> Bool {
        content.byteCount > 0 && (side == .here ? here : there).contains(content.digest)
    }
}

extension FolderAction {
    /// Returns the side that loses content by the action; nil for none.
    fileprivate func deletion(in view: FolderView, _ kept: KeptContents) -> DeletionDirection? {
        switch self {
        case .deleteHere(_, _, let content):
            return kept.has(content, .there) ? nil : .here
        case .deleteThere(let id):
            guard let content = view.remote[id]?.content else { return .there }
            return kept.has(content, .here) ? nil : .there
        case .download(let id, _, let over?):
            return over.byteCount > 0 && view.remote[id]?.content.byteCount == 0 ? .here : nil
        case .upload(_, let content, let id?):
            guard content.byteCount == 0, let old = view.remote[id]?.content else { return nil }
            return old.byteCount > 0 ? .there : nil
        default: return nil
        }
    }
}

/// The numbers of deletions that wait for approval, including files that would be emptied.
public struct HeldDeletions: Hashable, Sendable {
    /// Files that other devices have deleted and that are still in the folder.
    public var here = 0
    /// Files that are missing in the folder and still in the vault.
    public var there = 0

    /// True when no deletion waits on either side.
    public var isEmpty: Bool { here == 0 && there == 0 }
}
