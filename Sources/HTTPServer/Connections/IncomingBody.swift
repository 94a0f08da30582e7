internal import HTTPCore

/// The bytes of a body so far.
///
/// Room is made for four times as much whenever it is full, for twice as much while only the address is known, and never for
/// more than was announced or may come: a body is moved a few times at most. Who announces much and sends little has little
/// memory here.
struct IncomingBody {
    private(set) var bytes = ZeroizingBuffer()

    /// Bodies up to this size are not counted: connections are limited by themselves.
    static let freeBytes = 16 * 1_024
    /// The same, as long as only the address is known.
    static let freeUnidentifiedBytes = smallestCapacity
    private static let smallestCapacity = 4 * 1_024

    /// The bytes, for whoever goes on with them.
    mutating func take() -> ZeroizingBuffer {
        defer { bytes = ZeroizingBuffer() }
        return bytes
    }

    /// How much room there has to be so that `count` more bytes fit, of `longest` that there can be.
    func capacity(adding count: Int, atMost longest: Int, isIdentified: Bool) -> Int {
        let needed = bytes.count + count
        if needed <= bytes.capacity { return bytes.capacity }
        return max(needed, min(longest, max(bytes.capacity * (isIdentified ? 4 : 2), Self.smallestCapacity)))
    }

    /// Adds bytes.
    /// - Parameter capacity: What ``capacity(adding:atMost:isIdentified:)`` said.
    mutating func append(_ more: UnsafeRawBufferPointer, capacity: Int) {
        if capacity > bytes.capacity { bytes.reserveCapacity(capacity) }
        bytes.append(more)
    }
}
