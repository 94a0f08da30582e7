internal import Synchronization

/// A complete and routed request.
public final class Request: Sendable {
    public let id: RequestID
    public let head: RequestHead
    /// The client: the peer, or the address that a trusted proxy names.
    public let client: ClientAddress
    public let parameters: PathParameters
    public let query: QueryParameters
    public let bodyType: BodyType
    /// Nil when its route takes no body.
    public let body: RequestBody?
    /// The maximum number of values in a JSON body.
    public let valueLimit: Int
    /// The suspension points of long work on the request.
    public let pace: Pace

    public init(
        id: RequestID, head: RequestHead, client: ClientAddress, parameters: PathParameters = PathParameters(),
        query: QueryParameters = QueryParameters(), bodyType: BodyType = .none, body: RequestBody? = nil,
        valueLimit: Int = JSONParser.standardValueLimit, pace: Pace = .yielding
    ) {
        self.id = id
        self.head = head
        self.client = client
        self.parameters = parameters
        self.query = query
        self.bodyType = bodyType
        self.body = body
        self.valueLimit = valueLimit
        self.pace = pace
    }

    /// The trace of the request, only for the log.
    public var trace: TraceParent? { TraceParent(head.fields) }

    /// Returns the body's bytes, and leaves none.
    public func takeBody() -> ZeroizingBuffer { body?.take() ?? ZeroizingBuffer() }
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// Identifier and method. All other parts can have secrets.
    public var description: String { "Request(\(id) \(head.method))" }
    public var customMirror: Mirror { Mirror(self, children: ["id": id, "method": head.method]) }
}

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

/// The header fields of a request: one byte buffer with the whole head, and the position of each field in it.
///
/// The case of names is ignored. Values are bytes. As a `String`, bytes that are not UTF-8 (`obs-text`) become U+FFFD.
/// `description` prints no field, because a field can be a credential.
public struct RequestFields: Sendable {
    /// The position of one field line in the storage.
    package struct Entry: Sendable {
        package var nameStart: UInt32
        package var nameEnd: UInt32
        package var valueStart: UInt32
        package var valueEnd: UInt32

        package init(name: Range<Int>, value: Range<Int>) {
            nameStart = UInt32(truncatingIfNeeded: name.lowerBound)
            nameEnd = UInt32(truncatingIfNeeded: name.upperBound)
            valueStart = UInt32(truncatingIfNeeded: value.lowerBound)
            valueEnd = UInt32(truncatingIfNeeded: value.upperBound)
        }

        package var name: Range<Int> { Int(nameStart)..<Int(nameEnd) }
        package var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }
    }

    package let storage: ZeroizingBuffer
    package let entries: [Entry]

    /// Takes a parsed head. Every range must be within `storage`.
    package init(storage: ZeroizingBuffer, entries: [Entry]) {
        self.storage = storage
        self.entries = entries
    }

    /// The number of field lines.
    public var count: Int { entries.count }

    /// Returns the value of the field. Several lines are joined by a comma and a space (RFC 9110 §5.3).
    ///
    /// A duplicate of a single-valued field thus becomes invalid, instead of one of the two being chosen.
    public subscript(name: String) -> String? {
        withValue(named: name) { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the value of each line named `name`, in order.
    public func all(named name: String) -> [String] {
        entries.filter { isNamed(name, $0) }.map { String(decoding: storage[$0.value], as: UTF8.self) }
    }

    public func contains(_ name: String) -> Bool {
        entries.contains { isNamed(name, $0) }
    }

    /// Calls `body` with the bytes of the field's value, joined as in the subscript. Returns nil without such a field.
    public func withValue<Result>(
        named name: String, _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
        guard let first = entries.firstIndex(where: { isNamed(name, $0) }) else { return nil }
        let others = entries[(first + 1)...].filter { isNamed(name, $0) }
        if others.isEmpty {
            return try storage[entries[first].value].withContiguousStorageIfAvailable(body)
        }
        var combined = ZeroizingBuffer(storage[entries[first].value])
        for other in others {
            combined.append(ASCII.comma)
            combined.append(ASCII.space)
            combined.append(contentsOf: storage[other.value])
        }
        return try combined.withContiguousStorageIfAvailable(body)
    }

    /// All field lines as text, in order. Values can be credentials: use this for tests and exports, never for logs.
    public var lines: [(name: String, value: String)] {
        entries.map {
            (String(decoding: storage[$0.name], as: UTF8.self), String(decoding: storage[$0.value], as: UTF8.self))
        }
    }

    private func isNamed(_ name: String, _ entry: Entry) -> Bool {
        let utf8 = name.utf8
        guard utf8.count == Int(entry.nameEnd - entry.nameStart) else { return false }
        var position = Int(entry.nameStart)
        for byte in utf8 {
            guard ASCII.lowercased(byte) == ASCII.lowercased(storage[position]) else { return false }
            position += 1
        }
        return true
    }
}

extension RequestFields: CustomStringConvertible, CustomReflectable {
    public var description: String { "RequestFields(\(count) fields)" }
    public var customMirror: Mirror { Mirror(self, children: ["count": count]) }
}
