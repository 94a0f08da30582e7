internal import HTTPCore
internal import Postgres

/// The position behind which a page of shares begins. Clients treat its text as opaque.
struct SharePosition: PathParameterConvertible, Equatable {
    /// All shares of the page are older, or equally old with a lower id.
    let createdAt: Timestamp
    let id: ShareID

    /// The start of the first page.
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
