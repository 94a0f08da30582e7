/// What a socket did not take yet, in order. Each array is held as it is, not copied.
struct PendingOutput {
    private struct Segment {
        var bytes: [UInt8] = []
        /// The bytes that were taken.
        var offset = 0
    }

    private var first = Segment()
    private var others: [Segment] = []

    var isEmpty: Bool { first.offset == first.bytes.count }

    /// Adds what follows the first `start` bytes.
    mutating func append(_ bytes: [UInt8], from start: Int = 0) {
        guard start < bytes.count else { return }
        if isEmpty {
            first = Segment(bytes: bytes, offset: start)
        } else {
            others.append(Segment(bytes: bytes, offset: start))
        }
    }

    /// The array that is next, and where in it.
    var front: (bytes: [UInt8], offset: Int) { (first.bytes, first.offset) }

    /// Forgets so many bytes of the front's array.
    mutating func removeFirst(_ count: Int) {
        first.offset += count
        if isEmpty { first = others.isEmpty ? Segment() : others.removeFirst() }
    }
}
