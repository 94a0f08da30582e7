/// The events of a stream (HTML Living Standard, section 9.2). It supports the features that this server uses.
public struct ServerSentEvents: AsyncSequence, Sendable {
    /// One event.
    public struct Event: Hashable, Sendable {
        /// The value for `Last-Event-ID` of the next request.
        public let id: String?
        /// The type of the event; `message` when the server names none.
        public let name: String
        /// The event's data, its lines joined by line feeds.
        public let data: String
        /// The wait before the next connection; nil when the server has not sent one.
        public let retry: Duration?
    }

    public typealias Element = Event

    private let body: ReplyBody

    init(_ body: ReplyBody) { self.body = body }

    /// Iterates over the events in order, in one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var pieces: ReplyBody.AsyncIterator
        private var parser = ServerSentEventParser()
        private var ready: [Event] = []

        fileprivate init(_ body: ReplyBody) { pieces = body.makeAsyncIterator() }

        public mutating func next() async throws(TransportError) -> Event? {
            if Task.isCancelled { throw .cancelled }
            while ready.isEmpty {
                guard let piece = try await pieces.next() else { return nil }
                ready = parser.take(piece)
                if parser.isOverfull { throw .unacceptableReply }
            }
            return ready.removeFirst()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body) }
}

/// A parser of event streams: it takes bytes and returns events.
struct ServerSentEventParser {
    private var line: [UInt8] = []
    private var lastWasCarriageReturn = false
    private var id: String?
    private var name = ""
    private var data: [String] = []
    private var retry: Duration?

    /// The limit of a line, in bytes. Lines and events of this server are short.
    private static let limit = 64 << 10
    private(set) var isOverfull = false

    mutating func take(_ bytes: [UInt8]) -> [ServerSentEvents.Event] {
        var events: [ServerSentEvents.Event] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\n") where lastWasCarriageReturn:
                lastWasCarriageReturn = false
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                lastWasCarriageReturn = byte == UInt8(ascii: "\r")
                if let event = endLine() { events.append(event) }
            default:
                lastWasCarriageReturn = false
                line.append(byte)
                if line.count > Self.limit || data.count > 1_024 { isOverfull = true }
            }
            if isOverfull { return events }
        }
        return events
    }

    private mutating func endLine() -> ServerSentEvents.Event? {
        defer { line.removeAll(keepingCapacity: true) }
        if line.isEmpty { return dispatch() }
        let text = String(decoding: line, as: UTF8.self)
        guard let colon = text.firstIndex(of: ":") else { return nil }
        var value = text[text.index(after: colon)...]
        if value.first == " " { value.removeFirst() }
        switch text[..<colon] {
        case "id": id = String(value)
        case "event": name = String(value)
        case "data": data.append(String(value))
        case "retry": retry = Int(value).flatMap { (0...3_600_000).contains($0) ? .milliseconds($0) : nil }
        default: break
        }
        return nil
    }

    private mutating func dispatch() -> ServerSentEvents.Event? {
        defer {
            name = ""
            data = []
        }
        if data.isEmpty { return nil }
        return ServerSentEvents.Event(
            id: id, name: name.isEmpty ? "message" : name, data: data.joined(separator: "\n"), retry: retry)
    }
}
