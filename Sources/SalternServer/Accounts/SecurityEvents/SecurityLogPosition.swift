internal import HTTPCore
internal import Postgres

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
