/// Whether a round's pages lead anywhere: a server that always has another one would be followed for ever.
///
/// Revisions rise within a listing, so nothing is told twice. Of new ones a server can make up as many as it wants, in
/// tombstones, in what does not open and in heads of chunks, but no items that open. So a round takes a number of changes and
/// one more for each of those: an account is never too large. Where it ends the next round goes on from its cursor.
struct PullProgress {
    private let limits: SyncLimits
    private var last: Revision?
    private var count = 0
    /// How many changes there may be, as far as was looked.
    private var room: Int

    init(_ limits: SyncLimits) {
        self.limits = limits
        room = limits.changes
    }

    /// Everything is listed from the beginning, or what follows the cursor.
    mutating func begin() { last = nil }

    /// - Parameter openedCount: How many items there are here that open.
    /// - Throws: ``APIError/unexpectedReply``.
    mutating func take(_ page: ChangePage, after cursor: String?, openedCount: () throws -> Int) throws {
        if page.more, page.cursor == cursor { throw APIError.unexpectedReply }
        for change in page.changes {
            if let last, change.revision <= last { throw APIError.unexpectedReply }
            last = change.revision
        }
        // An empty page stands for thousands of tombstones that the server has passed by.
        count += page.changes.isEmpty ? limits.page : page.changes.count
        guard page.more, count > room else { return }
        room = limits.changes + (try openedCount())
        guard count <= room else { throw APIError.unexpectedReply }
    }
}
