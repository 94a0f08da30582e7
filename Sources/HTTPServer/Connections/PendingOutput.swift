internal import HTTPCore

/// What a socket did not take yet, in order. Each piece is held as it is, not copied.
struct PendingOutput {
    private struct Segment {
        var bytes = ZeroizingBuffer()
        /// The bytes that were taken.
        var offset = 0
    }

    private var first = Segment()
    private var others: [Segment] = []

    var isEmpty: Bool { first.offset == first.bytes.count }

    /// Adds what follows the first `start` bytes.
    mutating func append(_ bytes: ZeroizingBuffer, from start: Int = 0) {
        guard start < bytes.count else { return }
        if isEmpty {
            first = Segment(bytes: bytes, offset: start)
        } else {
            others.append(Segment(bytes: bytes, offset: start))
        }
    }

    /// The piece that is next, and where in it.
    var front: (bytes: ZeroizingBuffer, offset: Int) { (first.bytes, first.offset) }

    /// Forgets so many bytes of the front's piece.
    mutating func removeFirst(_ count: Int) {
        first.offset += count
        if isEmpty { first = others.isEmpty ? Segment() : others.removeFirst() }
    }
}
