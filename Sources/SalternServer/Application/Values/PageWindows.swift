/// How much of a page has been written that is read in windows, and what still fits.
///
/// Windows follow each other without a snapshot that would hold them together, as pages do: what changes meanwhile moves
/// behind what is still to come, so a listing shows it once more or as it became, and never passes it by.
struct PageWindows {
    private let limit: Int64
    private var count: Int64 = 0
    private var bytes = 0
    private var isFull = false

    init(limit: Int64) { self.limit = limit }

    /// Whether a window is the whole page.
    static func isWhole(_ window: [ItemInParts], isFollowed: Bool, _ limit: Int64) -> Bool {
        window.allSatisfy(\.isWhole) && (!isFollowed || Int64(window.count) >= limit)
    }

    /// Counts an item, unless it belongs to the next page. After one that does nothing fits any more.
    mutating func takes(_ byteCount: Int) -> Bool {
        guard hasRoom, count == 0 || bytes + byteCount <= PageSize.byteLimit else {
            isFull = true
            return false
        }
        count += 1
        bytes += byteCount
        return true
    }

    /// Whether another item may fit.
    var hasRoom: Bool { !isFull && count < limit && bytes < PageSize.byteLimit }

    /// How many items may follow.
    var remaining: Int64 { limit - count }

    /// How many sealed bytes the next window may have.
    var windowByteLimit: Int64 { min(PageSize.windowByteLimit, PageSize.byteLimit - Int64(bytes)) }
}
