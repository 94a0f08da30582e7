internal import Synchronization

/// The body of a request, which can be taken once: who parses it lets go of its text as soon as it is parsed, whoever
/// else still holds the request.
public final class RequestBody: Sendable {
    private let bytes: Mutex<ZeroizingBuffer>

    public init(_ bytes: ZeroizingBuffer = ZeroizingBuffer()) { self.bytes = Mutex(bytes) }

    /// Puts the bytes there that have come.
    public func fill(with bytes: ZeroizingBuffer) { self.bytes.withLock { $0 = bytes } }

    /// Whether there are no bytes.
    public var isEmpty: Bool { bytes.withLock { $0.isEmpty } }

    /// The bytes; from then on there are none.
    public func take() -> ZeroizingBuffer {
        bytes.withLock { bytes in
            defer { bytes = ZeroizingBuffer() }
            return bytes
        }
    }
}

extension RequestBody: CustomStringConvertible, CustomReflectable {
    public var description: String { "RequestBody" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
