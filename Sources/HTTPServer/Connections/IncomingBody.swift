internal import HTTPCore

/// The bytes of a body so far.
///
/// Room is made for four times as much whenever it is full, and never for more than was announced: a body is moved a few
/// times at most, and who announces much and sends little holds little.
struct IncomingBody {
    private(set) var bytes: [UInt8] = []
    private var capacity = 0

    /// Bodies up to this size are not counted among those of a loop.
    static let freeBytes = 64 * 1_024
    private static let smallestCapacity = 4 * 1_024

    /// How much room there has to be so that `count` more bytes fit.
    func capacity(adding count: Int, framing: BodyFraming) -> Int {
        let needed = bytes.count + count
        if needed <= capacity { return capacity }
        let roomy = max(needed, capacity * 4, Self.smallestCapacity)
        guard case .length(let announced) = framing else { return roomy }
        return max(needed, min(roomy, announced))
    }

    /// Adds bytes.
    /// - Parameter capacity: What ``capacity(adding:framing:)`` said.
    mutating func append(_ more: UnsafeRawBufferPointer, capacity: Int) {
        if capacity > self.capacity {
            self.capacity = capacity
            bytes.reserveCapacity(capacity)
        }
        bytes.append(contentsOf: more)
    }
}
