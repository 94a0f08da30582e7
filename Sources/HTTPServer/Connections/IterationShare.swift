/// What one connection may do in a turn of its loop before the others have theirs. Pure: told which turn it is.
///
/// Bytes alone are no measure: a few of them can be a request, or a chunk of a body.
struct IterationShare {
    /// Reads of the socket, of 64 KiB, or of a TLS record, at most.
    static let reads = 8
    /// Requests, and pieces of bodies.
    static let steps = 16
    static let writtenBytes = 512 * 1_024

    private var turn: ContinuousClock.Instant?
    private(set) var readsLeft = reads
    private(set) var stepsLeft = steps
    private(set) var writtenBytesLeft = writtenBytes

    /// Has everything begin anew, unless it is still the same turn.
    mutating func begin(_ turn: ContinuousClock.Instant) {
        if turn != self.turn { self = IterationShare(turn: turn) }
    }

    init(turn: ContinuousClock.Instant? = nil) { self.turn = turn }

    mutating func noteRead() { readsLeft -= 1 }

    mutating func noteStep() { stepsLeft -= 1 }

    mutating func noteWritten(_ count: Int) { writtenBytesLeft -= count }
}
