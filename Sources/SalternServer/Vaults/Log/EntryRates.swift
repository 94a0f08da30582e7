internal import Postgres
internal import VaultLog

/// The rates at which a vault's members append entries.
///
/// Removals and their seals have no limit by the hour, so no author keeps others from removing it.
enum EntryRates {
    /// The entries of an author in an hour.
    static let perHour = 60
    /// The new generations by an author in a day, except for removals by the owner.
    static let generationsPerDay = 32

    /// Checks an author's next entry.
    ///
    /// - Parameters:
    ///   - entries: The log before the entry.
    ///   - isOwners: True for an entry of the vault's owner.
    static func check(
        _ entry: Entry, after entries: [Entry], isOwners: Bool, at now: Timestamp
    ) throws(VaultProblem) {
        let own = entries.reversed().lazy.filter { $0.author == entry.author }
        switch entry.payload {
        case .seal: break
        case .remove:
            if isOwners { return }
            try limit(own.filter(\.payload.beginsGeneration), generationsPerDay, within: 86_400, at: now)
        case .rotate:
            try limit(own.filter { $0.payload.kind == .rotate }, 1, within: 60, at: now)
            try limit(own.filter(\.payload.beginsGeneration), generationsPerDay, within: 86_400, at: now)
            fallthrough
        default:
            try limit(own.filter { !$0.payload.isExempt }, perHour, within: 3_600, at: now)
        }
    }

    /// Checks that at most `count` - 1 of the entries, latest first, have times within some seconds.
    private static func limit(
        _ entries: some Sequence<Entry>, _ count: Int, within seconds: UInt64, at now: Timestamp
    ) throws(VaultProblem) {
        let present = VaultTime.seconds(now)
        let recent = Array(entries.prefix(count)).map { $0.time.seconds }.filter { $0 + seconds > present }
        guard recent.count >= count, let first = recent.min() else { return }
        throw .tooManyEntries(wait: .seconds(Int64(first + seconds - present)))
    }
}

extension EntryPayload {
    /// True for entries that do not count for the rate by the hour.
    fileprivate var isExempt: Bool {
        switch self {
        case .remove, .seal: true
        default: false
        }
    }
}

/// The server's check of the times of entries.
enum VaultTime {
    /// Checks that an entry can have been made now.
    static func check(_ entry: Entry, at now: Timestamp) throws(VaultProblem) {
        guard let present = EntryTime(seconds: seconds(now)), entry.time.isPlausible(at: present) else {
            throw .clockSkew(seconds: seconds(now))
        }
    }

    /// Checks that an entry can have been made earlier.
    static func checkPast(_ entry: Entry, at now: Timestamp) throws(VaultProblem) {
        guard let present = EntryTime(seconds: seconds(now)), entry.time.isPossible(at: present) else {
            throw .clockSkew(seconds: seconds(now))
        }
    }

    /// Returns a time in whole seconds since 1970.
    static func seconds(_ now: Timestamp) -> UInt64 { UInt64(max(now.unixMicroseconds / 1_000_000, 0)) }
}
