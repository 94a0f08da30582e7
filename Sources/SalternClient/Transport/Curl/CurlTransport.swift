internal import CCurl
internal import Cryptography
internal import Synchronization

/// ``HTTPTransport`` on libcurl: TLS 1.3, pinned public keys, HTTP/1.1, connections that are used again.
///
/// All transfers run on one thread, which ends with the last reference to the transport.
///
/// ```swift
/// let slow = try CurlTransport(server, rateLimit: 64 << 10)  // 64 KiB a second
/// show(slow.host ?? "")
/// ```
public final class CurlTransport: HTTPTransport {
    /// The server of a transport.
    public typealias Server = PinnedServer

    private let server: Server
    private let loop: CurlLoop

    /// The lowest limit of the rate, in bytes a second. It is far above the rate below which a request times out.
    public static let lowestRateLimit = 16 << 10

    /// Creates a transport, without a connection.
    /// - Parameter rateLimit: The maximum number of bytes a second that all requests together send, and receive, at
    ///   least ``lowestRateLimit``; nil for no limit. Pieces have 16 KiB, and the kernel receives at most one second
    ///   ahead.
    /// - Throws: ``TransportError/configuration(_:)`` with the part that is malformed: the base, a pin, the anchor or
    ///   the limit.
    public init(_ server: Server, rateLimit: Int? = nil) throws(TransportError) {
        if let fault = server.fault { throw .configuration(fault) }
        guard rateLimit ?? .max >= Self.lowestRateLimit else { throw .configuration(.rateLimit) }
        guard let loop = CurlLoop(rateLimit.map { TransferPace(bytesPerSecond: $0) }) else {
            throw .configuration(.system)
        }
        self.server = server
        self.loop = loop
    }

    deinit { loop.stop() }

    public var host: String? { PinnedServer.host(of: server.base) }

    public func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        let collector = ReplyCollector(limit: request.replyLimit)
        let transfer = try transfer(request, isStream: false, sink: collector)
        try await loop.run(transfer)
        guard let head = transfer.head else { throw .unacceptableReply }
        return HTTPReply(head: head, body: collector.take())
    }

    public func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
        let sink = StreamSink()
        let transfer = try transfer(request, isStream: true, sink: sink)
        let body = ReplyBody(
            onRoom: { [loop] in loop.resume(transfer) }, onAbandoned: { [loop] in loop.cancel(transfer) })
        sink.connect(body)
        try await loop.run(transfer)
        guard let head = transfer.head else { throw .unacceptableReply }
        return HTTPReplyStream(head: head, body: body)
    }

    private func transfer(
        _ request: HTTPRequest, isStream: Bool, sink: any TransferSink
    ) throws(TransportError) -> CurlTransfer {
        guard
            let transfer = CurlTransfer(
                request, to: server, pace: loop.pace, isStream: isStream, sink: sink)
        else { throw .configuration(.request) }
        return transfer
    }
}

/// Receives a body as it arrives, on the loop's thread.
protocol TransferSink: AnyObject, Sendable {
    /// Receives a piece of the body, and returns how the transfer continues.
    func receive(_ bytes: UnsafeRawBufferPointer) -> TransferSinkAnswer
    /// Ends the body.
    func finish(_ end: Result<Void, TransportError>)
}

enum TransferSinkAnswer {
    case taken, paused, refused
}

/// Collects a whole body.
private final class ReplyCollector: TransferSink {
    private let bytes = Mutex<[UInt8]>([])
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    func receive(_ piece: UnsafeRawBufferPointer) -> TransferSinkAnswer {
        bytes.withLock { bytes in
            let count = bytes.count + piece.count
            guard count <= limit else { return .refused }
            if count > bytes.capacity {
                // A reply may contain a token. An array that grows automatically does not zero its previous memory.
                var longer: [UInt8] = []
                longer.reserveCapacity(max(count, 2 * bytes.capacity))
                longer += bytes
                bytes.zero()
                bytes = longer
            }
            bytes.append(contentsOf: piece)
            return .taken
        }
    }

    func finish(_ end: Result<Void, TransportError>) {}

    func take() -> [UInt8] {
        bytes.withLock { bytes in
            let taken = bytes
            bytes = []
            return taken
        }
    }
}

/// Passes a body on to its reader, without a strong reference.
private final class StreamSink: TransferSink {
    private struct Reader: Sendable {
        weak var body: ReplyBody?
    }
    private let reader = Mutex(Reader())

    func connect(_ body: ReplyBody) { reader.withLock { $0.body = body } }

    private var body: ReplyBody? { reader.withLock { $0.body } }

    func receive(_ bytes: UnsafeRawBufferPointer) -> TransferSinkAnswer {
        guard let body else { return .refused }
        return body.offer(bytes) ? .taken : .paused
    }

    func finish(_ end: Result<Void, TransportError>) { body?.finish(end) }
}
