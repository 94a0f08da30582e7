internal import HTTPCore
internal import Postgres

/// An entry of an account's security log: an event, an opened session, or ongoing failures.
struct SecurityLogEntry: Sendable {
    /// The position in the log, latest first.
    let position: SecurityLogPosition
    /// A ``SecurityEvent/Kind``, or `session_opened`.
    let kind: String
    var sessionID: SessionID?
    var deviceName: String?
    var count: Int64?
    var since: Timestamp?
    /// True while further failures may be added to the count.
    var isOngoing = false

    /// Creates an entry from failures that no success has ended yet.
    init(_ failures: FailureTally) {
        // Each kind has its own position, so pages list it once.
        position = SecurityLogPosition(moment: failures.latest, id: UUID(high: 0, low: UInt64(failures.kind.rawValue)))
        kind = failures.kind.event.rawValue
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
        if let sessionID { writer.member("sessionId", sessionID) }
        if let deviceName { writer.object("device") { writer in writer.member("name", deviceName) } }
        if let count { writer.member("count", count) }
        if let since { writer.member("since", since) }
        if isOngoing { writer.member("ongoing", true) }
    }
}

/// A page of the log.
struct SecurityLogPage: Sendable {
    let entries: [SecurityLogEntry]
    /// The start of the next page. Nil if this page is the last.
    let next: SecurityLogPosition?

    /// Merges events and ongoing failures into a page.
    ///
    /// - Parameters:
    ///   - rows: Result of ``FindSecurityLog`` behind `position`, with a limit of one more than `limit`.
    ///   - failures: The account's ongoing failures, by kind.
    init(_ rows: [SecurityLogEntry], _ failures: [FailureTally], behind position: SecurityLogPosition, limit: Int) {
        let ongoing = failures.map(SecurityLogEntry.init).filter { $0.position < position }
        let all = (rows + ongoing).sorted { $1.position < $0.position }
        entries = Array(all.prefix(limit))
        next = all.count > limit ? entries.last?.position : nil
    }
}

/// A position in an account's security log. Its text, opaque to clients, names a page.
struct SecurityLogPosition: Sendable, Comparable, PathParameterConvertible {
    let moment: Timestamp
    let id: UUID

    /// The position before the latest entry.
    static let newest = SecurityLogPosition(moment: .distantFuture, id: UUID(high: .max, low: .max))

    init(moment: Timestamp, id: UUID) {
        self.moment = moment
        self.id = id
    }

    init?(pathParameter text: String) {
        guard let (moment, bytes) = PositionToken.parse(text, .securityLog), let id = UUID(bytes: bytes) else {
            return nil
        }
        self.moment = moment
        self.id = id
    }

    var text: String { PositionToken.text(.securityLog, moment, id.bytes) }

    static func < (left: SecurityLogPosition, right: SecurityLogPosition) -> Bool {
        (left.moment, left.id) < (right.moment, right.id)
    }
}
