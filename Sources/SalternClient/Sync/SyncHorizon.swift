/// The revision of the account up to which a device has everything, as far as it can be inferred.
///
/// The server reports the account's revision after each change, also after a change by this device. An event with the
/// horizon's revision has no new changes. Every other event can have some, even with a lower revision: the server may
/// have been restored from a backup.
struct SyncHorizon {
    /// Nil until a revision is known.
    private(set) var revision: Int64?
    /// The last revision that the server has reported and that no fetch has been started for.
    private var reported: Int64?

    /// The state at the beginning of a fetch.
    struct Beginning {
        fileprivate let reported: Int64?
        fileprivate(set) var last: Int64?

        /// Records a fetched change.
        mutating func take(_ revision: Revision) { last = max(last ?? 0, revision.number) }
    }

    /// Returns true when an event has new changes, which then need a fetch.
    mutating func isNews(_ revision: Int64) -> Bool {
        if revision == self.revision { return false }
        reported = revision
        return true
    }

    /// Starts a fetch. Events that arrive during it belong to the next one.
    mutating func begin() -> Beginning {
        defer { reported = nil }
        return Beginning(reported: reported)
    }

    /// Ends a fetch at the end of the listing.
    mutating func end(_ fetching: Beginning) {
        guard let last = [fetching.reported, fetching.last].compactMap(\.self).max() else { return }
        let wentBack = fetching.reported.map { $0 < revision ?? 0 } ?? false
        revision = wentBack ? last : max(revision ?? 0, last)
    }

    /// Records a confirmed change of this device. If another device has made a change in between, the horizon stays.
    mutating func confirm(_ revision: Revision) {
        if let known = self.revision, known < .max, revision.number == known + 1 { self.revision = revision.number }
    }
}
