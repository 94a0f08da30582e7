/// Ends a round against a hostile server whose pages never end. Revisions rise within a listing, so no change is
/// repeated.
///
/// A server can generate any number of new ones, in tombstones, unreadable items and headers of chunks. It cannot
/// generate items that can be opened. The limit is therefore a fixed number of changes and one for each such item, so
/// no account is too large. The next round continues from the cursor.
struct PullProgress {
    private let limits: SyncLimits
    private var last: Revision?
    private var count = 0
    /// The limit of changes, according to the last count of items.
    private var room: Int

    init(_ limits: SyncLimits) {
        self.limits = limits
        room = limits.changes
    }

    /// Starts a complete listing, or one after the cursor.
    mutating func begin() { last = nil }

    /// Counts a page.
    /// - Parameter openedCount: Returns the number of items on this device that were opened.
    /// - Throws: ``APIError/unexpectedReply``.
    mutating func take(_ page: ChangePage, after cursor: String?, openedCount: () throws -> Int) throws {
        if page.more, page.cursor == cursor { throw APIError.unexpectedReply }
        for change in page.changes {
            if let last, change.revision <= last { throw APIError.unexpectedReply }
            last = change.revision
        }
        // An empty page represents thousands of tombstones that the server has skipped.
        count += page.changes.isEmpty ? limits.page : page.changes.count
        guard page.more, count > room else { return }
        room = limits.changes + (try openedCount())
        guard count <= room else { throw APIError.unexpectedReply }
    }
}
