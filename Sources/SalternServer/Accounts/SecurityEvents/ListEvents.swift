internal import HTTPCore
internal import Postgres

/// `GET /v1/account/events`: lists the account's security log in pages, latest entry first.
struct ListEvents: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let limit = try PageSize.limit(of: request)
        let position: SecurityLogPosition = try request.query.optional("page") ?? .newest
        guard let userid = try await authorization.read(FindUserid()).first else { throw Unauthenticated() }
        let rows = try await authorization.read(FindSecurityLog(position: position, limit: Int64(limit) + 1))
        let page = SecurityLogPage(
            rows, try await authorization.attempts.failures(of: userid), behind: position, limit: limit)
        return .json(capacity: 64 + page.entries.count * 192) { writer in
            writer.object { writer in
                writer.array("events") { writer in
                    for entry in page.entries { writer.object { writer in entry.write(to: &writer) } }
                }
                if let next = page.next { writer.member("nextPage", next.text) }
            }
        }
    }
}

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

/// Finds the latest entries of an account's security log behind a position: events, and sessions whose rows still
/// exist.
struct FindSecurityLog: AccountRead {
    let position: SecurityLogPosition
    let limit: Int64

    static let sql: AccountSQL<Self> = """
        (
            SELECT e.occurred_at, e.event_id, e.kind, e.session_id, e.device_name, e.count, e.since
            FROM saltern.security_events e
            WHERE e.account_id = \(.account) AND (e.occurred_at, e.event_id) < (\(\.position.moment), \(\.position.id))
            ORDER BY e.occurred_at DESC, e.event_id DESC LIMIT \(\.limit)
        ) UNION ALL (
            SELECT s.created_at, s.session_id, 'session_opened', s.session_id, s.device_name, NULL, NULL
            FROM saltern.sessions s
            WHERE s.account_id = \(.account) AND NOT s.restricted
                AND (s.created_at, s.session_id) < (\(\.position.moment), \(\.position.id))
            ORDER BY s.created_at DESC, s.session_id DESC LIMIT \(\.limit)
        )
        ORDER BY 1 DESC, 2 DESC LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> SecurityLogEntry {
        SecurityLogEntry(
            position: SecurityLogPosition(moment: try row.next(), id: try row.next()), kind: try row.next(),
            sessionID: try row.next(), deviceName: try row.next(), count: try row.next(), since: try row.next())
    }
}
