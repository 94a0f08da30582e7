/// The relation of two logs of one vault.
public enum LogComparison: Hashable, Sendable {
    /// Both have the same entries.
    case same
    /// The other log continues the own one.
    case isBehind
    /// The own log continues the other one. After a restored backup, entries from this number on are put back.
    case isAhead(missingFrom: EntryNumber)
    /// The logs have different entries from this number on. Nothing can join them: writing stops.
    case diverged(at: EntryNumber)

    /// Compares the hashes of two logs.
    public init(own: [EntryHash], other: [EntryHash]) {
        let common = min(own.count, other.count)
        // The last hash stands for all before it.
        if common > 0, own[common - 1] == other[common - 1] {
            guard own.count != other.count else {
                self = .same
                return
            }
            self = own.count < other.count ? .isBehind : .isAhead(missingFrom: Self.number(common))
            return
        }
        self = .diverged(at: Self.number(Self.firstDifference(own, other, common)))
    }

    /// Finds the first index with different hashes, or `common` if all are equal. Equal hashes have equal predecessors.
    private static func firstDifference(_ own: [EntryHash], _ other: [EntryHash], _ common: Int) -> Int {
        var low = 0
        var high = common
        while low < high {
            let middle = (low + high) / 2
            if own[middle] == other[middle] { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private static func number(_ index: Int) -> EntryNumber {
        guard let number = EntryNumber(UInt64(index) + 1) else {
            preconditionFailure("a log has at most 4,096 entries")
        }
        return number
    }
}

extension MembershipLog {
    /// The place of a head that another device or an edit names.
    public enum HeadPlace: Hashable, Sendable {
        /// The entry is in this log.
        case known
        /// The number is higher than that of this log. Fetch the log once, and compare again.
        case unknown
        /// Another entry is in this log at that number.
        case diverged
    }

    /// Finds a head.
    public func place(of head: Head) -> HeadPlace {
        guard let hash = hash(at: head.number) else { return .unknown }
        return hash == head.hash ? .known : .diverged
    }
}
