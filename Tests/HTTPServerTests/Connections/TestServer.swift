import EventLoop
import HTTPCore
import HTTPServer
import SalternTesting
import Synchronization
import TransportSecurity

/// A responder with routes that exercise connections, and the server around it.
final class TestServer: Sendable {
    let server: HTTPServer
    let responder: TestResponder
    private let loops: [EventLoop]

    /// - Parameter context: nil speaks plain HTTP.
    init(_ configuration: HTTPServerConfiguration = .patient, context: TLSServerContext? = nil, loops count: Int = 1)
        async throws
    {
        let responder = TestResponder()
        var loops: [EventLoop] = []
        for index in 0..<count {
            let loop = try EventLoop(name: "test-\(index)")
            try loop.start()
            loops.append(loop)
        }
        self.loops = loops
        self.responder = responder
        server = try await HTTPServer(
            address: SocketAddress(host: "127.0.0.1", port: 0), context: context, configuration: configuration,
            loops: loops.map { ($0, responder) })
    }

    func connect(
        _ context: TLSClientContext? = nil, sendTimeout: Duration = .seconds(60)
    ) async throws -> RawConnection {
        try await RawConnection.open(port: server.address.port, context: context, sendTimeout: sendTimeout)
    }

    func stop() async throws {
        responder.release()
        await server.drain(deadline: .milliseconds(1))
        for loop in loops { loop.stop() }
    }
}

extension HTTPServerConfiguration {
    /// Deadlines that no test reaches, however busy the machine is: a test of one makes that one short.
    static var patient: HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration()
        configuration.handshakeDeadline = .seconds(300)
        configuration.headerDeadline = .seconds(300)
        configuration.idleDeadline = .seconds(300)
        configuration.writeDeadline = .seconds(300)
        configuration.lingerDeadline = .seconds(60)
        return configuration
    }
}

/// Runs `body` with a server and stops it.
func withServer(
    _ configuration: HTTPServerConfiguration = .patient, context: TLSServerContext? = nil, loops: Int = 1,
    _ body: (TestServer) async throws -> Void
) async throws {
    let server = try await TestServer(configuration, context: context, loops: loops)
    do {
        try await body(server)
    } catch {
        try await server.stop()
        throw error
    }
    try await server.stop()
}

/// `/echo` answers the body, `/drip` gives it little time, `/wait` answers when released, `/hang` too but with little
/// time for it, `/large` answers megabytes, `/refuse` answers 404 at once, `/upload` says what
/// it got. For the streams see ``TestStreams``.
final class TestResponder: Responder {
    /// More than the kernel's socket buffers on both sides hold.
    static let largeByteCount = 32 * 1_024 * 1_024

    private struct Waiting {
        var isReleased = false
        var continuations: [CheckedContinuation<Void, Never>] = []
    }

    private let waiting = Mutex(Waiting())
    private let counts = Mutex((started: 0, cancelled: 0))
    let streams = TestStreams()

    /// Requests of `/wait` that have begun, and those whose client has gone or whose time was up.
    var started: Int { counts.withLock { $0.started } }
    var cancelled: Int { counts.withLock { $0.cancelled } }

    func admit(_ head: RequestHead, from client: ClientAddress) -> Admission {
        if head.path == "/refuse" { return .refuse(Problem.notFound.response()) }
        let limit = head.path == "/upload" ? 8_388_608 : head.path == "/echo" || head.path == "/drip" ? 1_000 : 10
        let hasLittleTime = head.path == "/hang" || head.path.hasSuffix("-in-little-time")
        let deadline: Duration = hasLittleTime ? .milliseconds(300) : .seconds(300)
        if let stream = streams.stream(at: head.path, wait: wait) {
            return .accept(
                Plan(bodyLimit: 0, bodyDeadline: .seconds(300), handlerDeadline: deadline) { _ in
                    Response(status: .ok, body: .stream(stream))
                })
        }
        return .accept(
            Plan(
                bodyLimit: limit, bodyDeadline: head.path == "/drip" ? .milliseconds(300) : .seconds(300),
                handlerDeadline: deadline
            ) { body in
                switch head.path {
                case "/upload":
                    return Response(status: .ok, body: .bytes(Array("\(body.count) \(Self.checksum(of: body))".utf8)))
                case "/echo": return Response(status: .ok, body: .bytes(body))
                case "/large":
                    return Response(status: .ok, body: .bytes([UInt8](repeating: 65, count: Self.largeByteCount)))
                case "/wait", "/hang":
                    await self.wait()
                    return Response(status: .ok, body: .bytes(Array("waited".utf8)))
                default: return Response(status: .ok, body: .bytes(Array(head.path.utf8)))
                }
            })
    }

    func refusal(_ refusal: Refusal, from client: ClientAddress) -> Response { refusal.problem.response() }

    /// Depends on every byte and its place.
    static func checksum(of bytes: [UInt8]) -> UInt64 {
        bytes.reduce(14_695_981_039_346_656_037) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
    }

    /// Lets every `/wait` answer, now and later.
    func release() {
        let continuations = waiting.withLock { waiting in
            waiting.isReleased = true
            defer { waiting.continuations = [] }
            return waiting.continuations
        }
        for continuation in continuations { continuation.resume() }
    }

    @Sendable private func wait() async {
        counts.withLock { $0.started += 1 }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReleased = waiting.withLock { waiting in
                    if !waiting.isReleased { waiting.continuations.append(continuation) }
                    return waiting.isReleased
                }
                if isReleased { continuation.resume() }
            }
        } onCancel: {
            counts.withLock { $0.cancelled += 1 }
        }
    }
}

/// Waits until `condition` holds; fails after a minute.
func eventually(_ condition: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while try await !condition() {
        guard ContinuousClock.now < end else { throw RawConnection.Failure.timedOut }
        try await Task.sleep(for: .milliseconds(2))
    }
}
