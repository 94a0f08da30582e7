/// The revision of the account up to which a device has everything, as far as that can be inferred.
///
/// The server reports the account's revision after each change, also after a change by this device. An event with the revision
/// of the horizon has no news. Every other one can have some, also one with a lower revision: the server may have been restored
/// from a backup.
struct SyncHorizon {
    /// Nil as long as no revision is known.
    private(set) var revision: Int64?
    /// The last revision that the server has reported and that no fetching was begun for.
    private var reported: Int64?

    /// The state at the beginning of a fetch.
    struct Beginning {
        fileprivate let reported: Int64?
        fileprivate(set) var last: Int64?

        /// Notes a change that was fetched.
        mutating func take(_ revision: Revision) { last = max(last ?? 0, revision.number) }
    }

    /// Returns whether an event has news, and expects a fetching when it has.
    mutating func isNews(_ revision: Int64) -> Bool {
        if revision == self.revision { return false }
        reported = revision
        return true
    }

    /// A fetching begins. What the server reports while it goes on is of the next one.
    mutating func begin() -> Beginning {
        defer { reported = nil }
        return Beginning(reported: reported)
    }

    /// A fetching has come to the end of the listing.
    mutating func end(_ fetching: Beginning) {
        guard let last = [fetching.reported, fetching.last].compactMap(\.self).max() else { return }
        let wentBack = fetching.reported.map { $0 < revision ?? 0 } ?? false
        revision = wentBack ? last : max(revision ?? 0, last)
    }

    /// The server has confirmed a change of this device. Where another device has changed something in between, the horizon
    /// stays where it is.
    mutating func confirm(_ revision: Revision) {
        if let known = self.revision, known < .max, revision.number == known + 1 { self.revision = revision.number }
    }
}
