/// The latest timeline of each cluster in use. A frozen or disconnected primary can return on an earlier timeline after
/// a standby was promoted. It accepts writes as a primary, but they are lost.
struct TimelineMemory: Sendable {
    /// The server of a connection, compared with earlier connections.
    enum Place: Sendable {
        /// The same as before. Also used if the timeline is not readable.
        case same
        /// A new one: another server was promoted, or has replaced it.
        case later
        /// A server in whose place another one was promoted.
        case earlier
    }

    private var latest: [Substring: UInt32] = [:]

    /// Records the server of a connection.
    mutating func note(_ fingerprint: DatabaseFingerprint) -> Place {
        guard let (cluster, timeline) = fingerprint.place else { return .same }
        let isFirst = latest.isEmpty
        let known = latest[cluster] ?? 0
        latest[cluster] = max(known, timeline)
        if timeline < known { return .earlier }
        return timeline == known || isFirst ? .same : .later
    }
}

/// The error of a server from before a failover.
public struct DatabaseIsSuperseded: Error, CustomStringConvertible {
    public var description: String {
        "it is on an earlier timeline than the primary that was used before: another server was promoted in its place"
    }
}
