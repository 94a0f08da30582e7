internal import HTTPCore
internal import Postgres

/// Behind which share a page of a listing begins: opaque to clients.
struct SharePosition: PathParameterConvertible, Equatable {
    /// Every share of the page was created before, or at the same moment with a lower identifier.
    let createdAt: Timestamp
    let id: ShareID

    /// Where the first page begins.
    static let first = SharePosition(createdAt: .distantFuture, id: .highest)

    init(createdAt: Timestamp, id: ShareID) {
        self.createdAt = createdAt
        self.id = id
    }

    init?(pathParameter text: String) {
        guard let (moment, bytes) = PositionToken.parse(text, .shares),
            let id = bytes.withUnsafeBytes({ ShareID(bytes: $0) })
        else { return nil }
        createdAt = moment
        self.id = id
    }

    var text: String { PositionToken.text(.shares, createdAt, id.bytes) }
}
