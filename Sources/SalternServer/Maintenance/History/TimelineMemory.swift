/// The latest timeline of each cluster that was used. One that comes back on an earlier one, a primary that was frozen or cut
/// off while a standby was promoted, takes writes and says that it is the primary, but what is written there is lost.
struct TimelineMemory: Sendable {
    /// What a connection leads to, compared with what others have led to.
    enum Place: Sendable {
        /// Where all others do; what may not be known is taken for that.
        case same
        /// Where none did yet: another server was promoted, or is there instead.
        case later
        /// To a server in whose place another was promoted.
        case earlier
    }

    private var latest: [Substring: UInt32] = [:]

    /// Notes what a connection leads to.
    mutating func note(_ fingerprint: DatabaseFingerprint) -> Place {
        guard let (cluster, timeline) = fingerprint.place else { return .same }
        let isFirst = latest.isEmpty
        let known = latest[cluster] ?? 0
        latest[cluster] = max(known, timeline)
        if timeline < known { return .earlier }
        return timeline == known || isFirst ? .same : .later
    }
}

/// The server is one from before a failover.
public struct DatabaseIsSuperseded: Error, CustomStringConvertible {
    public var description: String {
        "it is on an earlier timeline than the primary that was used before: another server was promoted in its place"
    }
}
