internal import Synchronization

/// The body of a request, which can be taken once.
///
/// The parser releases the text after parsing, even if other code still holds the request.
public final class RequestBody: Sendable {
    private let bytes: Mutex<ZeroizingBuffer>

    public init(_ bytes: ZeroizingBuffer = ZeroizingBuffer()) { self.bytes = Mutex(bytes) }

    /// Stores the received bytes.
    public func fill(with bytes: ZeroizingBuffer) { self.bytes.withLock { $0 = bytes } }

    /// True when there are no bytes.
    public var isEmpty: Bool { bytes.withLock { $0.isEmpty } }

    /// Returns the bytes, and leaves none.
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
