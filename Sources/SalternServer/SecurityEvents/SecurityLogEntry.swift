internal import HTTPCore
internal import Postgres

/// A line of an account's security log: an event, a session that was opened, or failures that go on.
struct SecurityLogEntry: Sendable {
    /// Where the line stands; the latest is the first.
    let position: SecurityLogPosition
    /// A ``SecurityEvent/Kind``, or `session_opened`.
    let kind: String
    var sessionID: SessionID?
    var deviceName: String?
    var count: Int64?
    var since: Timestamp?
    /// Whether more of the same may still be counted.
    var isOngoing = false

    /// The failures of the account's userid that no success has ended yet.
    init(_ failures: FailedAttempts) {
        position = SecurityLogPosition(moment: failures.last, id: UUID(high: 0, low: 0))
        kind = SecurityEvent.Kind.failedLogins.rawValue
        count = failures.count
        since = failures.since
        isOngoing = true
    }

    init(
        position: SecurityLogPosition, kind: String, sessionID: SessionID?, deviceName: String?, count: Int64?,
        since: Timestamp?
    ) {
        self.position = position
        self.kind = kind
        self.sessionID = sessionID
        self.deviceName = deviceName
        self.count = count
        self.since = since
    }

    /// Writes the members of the entry.
    func write(to writer: inout JSONWriter) {
        writer.member("kind", kind)
        writer.member("occurredAt", position.moment)
        if let sessionID { writer.member("sessionId", sessionID.description) }
        if let deviceName { writer.object("device") { writer in writer.member("name", deviceName) } }
        if let count { writer.member("count", count) }
        if let since { writer.member("since", since) }
        if isOngoing { writer.member("ongoing", true) }
    }
}

/// A page of the log.
struct SecurityLogPage: Sendable {
    let entries: [SecurityLogEntry]
    /// Where the next page begins; nil when this one is the last.
    let next: SecurityLogPosition?

    /// Puts a page together.
    /// - Parameters:
    ///   - rows: What ``FindSecurityLog`` found behind `position` with one more than `limit`.
    ///   - failures: The failures of the account's userid, if there are any.
    init(_ rows: [SecurityLogEntry], _ failures: FailedAttempts?, behind position: SecurityLogPosition, limit: Int) {
        let ongoing = failures.map(SecurityLogEntry.init).flatMap { $0.position < position ? $0 : nil }
        let all = (rows + (ongoing.map { [$0] } ?? [])).sorted { $1.position < $0.position }
        entries = Array(all.prefix(limit))
        next = all.count > limit ? entries.last?.position : nil
    }
}
