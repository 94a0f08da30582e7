import EventLoop
import Foundation
import HTTPCore
import SalternTesting
import Synchronization
import TransportSecurity

@testable import HTTPServer

/// A responder with routes that exercise connections, and the server around it.
final class TestServer: Sendable {
    let server: HTTPServer
    let responder: TestResponder
    /// The memory of bodies of known senders.
    let bodies: MemoryBudget
    private let loops: [EventLoop]
    var loop: EventLoop { loops[0] }

    /// - Parameter context: nil speaks plain HTTP.
    init(
        _ configuration: HTTPServerConfiguration = .patient, context: TLSServerContext? = nil, loops count: Int = 1,
        accepts: Bool = true
    ) async throws {
        let responder = TestResponder()
        var loops: [EventLoop] = []
        for index in 0..<count {
            let loop = try EventLoop(name: "test-\(index)")
            try loop.start()
            loops.append(loop)
        }
        self.loops = loops
        bodies = configuration.budgets.bodies
        self.responder = responder
        server = try await HTTPServer(
            address: SocketAddress(host: "127.0.0.1", port: 0), context: context, configuration: configuration,
            loops: loops.map { ($0, responder) })
        if accepts { await server.startAccepting() }
    }

    func connect(
        _ context: TLSClientContext? = nil, from source: String? = nil, receiveBuffer: Int32? = nil,
        sendTimeout: Duration = .seconds(60)
    ) async throws -> RawConnection {
        try await RawConnection.open(
            port: server.address.port, context: context, source: source, receiveBuffer: receiveBuffer,
            sendTimeout: sendTimeout)
    }

    /// Waits until no connection, no place of a request and no byte of a budget is taken, and the process holds no socket
    /// of a client any more.
    func expectNothingHeld(_ configuration: HTTPServerConfiguration) async throws {
        let budgets = configuration.budgets
        try await eventually {
            let places = await server.requestsUnderWay
            return server.connectionCount == 0 && places == 0 && budgets.bodies.used == 0
                && budgets.unidentifiedBodies.used == 0 && budgets.output.used == 0
        }
        try await eventually { try openSockets() == 0 }
    }

    /// The server's ends of connections that some process still holds: those in `/proc/net/tcp` that have an inode.
    private func openSockets() throws -> Int {
        let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
        let port = ":" + String(server.address.port, radix: 16, uppercase: true).leftPadded(to: 4)
        return table.split(separator: "\n").dropFirst().count { line in
            let columns = line.split(separator: " ")
            return columns[1].hasSuffix(port) && columns[3] != "0A" && columns[9] != "0"
        }
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
        configuration.becomePatient()
        configuration.idleDeadline = .seconds(300)
        configuration.drainGrace = .seconds(300)
        configuration.lingerDeadline = .seconds(300)
        return configuration
    }
}

/// Runs `body` with a server and stops it.
func withServer(
    _ configuration: HTTPServerConfiguration = .patient, context: TLSServerContext? = nil, loops: Int = 1,
    accepts: Bool = true, _ body: (TestServer) async throws -> Void
) async throws {
    let server = try await TestServer(configuration, context: context, loops: loops, accepts: accepts)
    do {
        try await body(server)
    } catch {
        try await server.stop()
        throw error
    }
    try await server.stop()
}

/// `/echo` answers the body, `/client` the address of the client, `/guest` says how long a body of anybody's was, `/drip` gives it little time, `/wait` answers when released, `/hang` too but with little
/// time for it, `/large` answers megabytes, `/page` two of them, `/refuse` answers 404 at once, `/upload` says what
/// it got. For the streams see ``TestStreams``.
final class TestResponder: Responder {
    /// More than the kernel's socket buffers on both sides hold.
    static let largeByteCount = 20 * 1_024 * 1_024
    /// More than a kernel holds for a client with a small receive buffer.
    static let pageByteCount = 2 * 1_024 * 1_024

    private struct Waiting {
        var isReleased = false
        var continuations: [CheckedContinuation<Void, Never>] = []
    }

    private let waiting = Mutex(Waiting())
    private let counts = Mutex((started: 0, cancelled: 0, identified: 0))
    let streams = TestStreams()
    /// What was known of each request that was refused.
    let refused = Mutex<[String?]>([])
    /// Called on the loop when the whole body of a request of `/guest` has come.
    let guestArrived = Mutex<(@Sendable () -> Void)?>(nil)

    /// Requests of `/wait` that have begun, and those whose client has gone or whose time was up.
    var started: Int { counts.withLock { $0.started } }
    var cancelled: Int { counts.withLock { $0.cancelled } }
    /// How often somebody was asked about before the body was read.
    var identified: Int { counts.withLock { $0.identified } }

    func admit(_ head: RequestHead, from client: ClientAddress) -> Admission {
        if head.path == "/refuse" { return .refuse(Problem.notFound.response()) }
        let limits = ["/upload": 8_388_608, "/guest": 98_304, "/echo": 1_000, "/drip": 1_000]
        let limit = limits[head.path] ?? 10
        let hasLittleTime = head.path == "/hang" || head.path.hasSuffix("-in-little-time")
        let deadline: Duration = hasLittleTime ? .milliseconds(300) : .seconds(300)
        if let stream = streams.stream(at: head.path, wait: wait) {
            return .accept(
                RequestPlan(bodyLimit: 0, handlerDeadline: deadline) {
                    Response(status: .ok, body: .stream(stream))
                })
        }
        let body = RequestBody()
        return .accept(
            RequestPlan(
                bodyLimit: limit, handlerDeadline: deadline, identify: identification(of: head), body: body
            ) {
                switch head.path {
                case "/upload":
                    let bytes = Array(body.take())
                    return Response(status: .ok, body: Self.text("\(bytes.count) \(Self.checksum(of: bytes))"))
                case "/guest":
                    self.guestArrived.withLock { $0 }?()
                    return Response(status: .ok, body: Self.text("\(body.take().count)"))
                case "/client": return Response(status: .ok, body: Self.text("\(client)"))
                case "/echo": return Response(status: .ok, body: .bytes(body.take()))
                case "/large":
                    return Self.letters(65, count: Self.largeByteCount)
                case "/page": return Self.letters(66, count: Self.pageByteCount)
                case "/wait", "/hang":
                    await self.wait()
                    return Response(status: .ok, body: Self.text("waited"))
                default: return Response(status: .ok, body: Self.text(head.path))
                }
            })
    }

    /// Who sends to `/upload` is the number in `X-Owner`, 0 without one; `nobody` is refused.
    private func identification(of head: RequestHead) -> (@Sendable () async -> Identification)? {
        guard head.path == "/upload" else { return nil }
        return { [self] in
            counts.withLock { $0.identified += 1 }
            let name = head.fields.withValue(named: "x-party") { String(decoding: $0, as: UTF8.self) } ?? "0"
            if name == "waiting" { await wait() }
            guard name != "nobody" else {
                return .refuse(Problem(.unauthorized, "unauthenticated").response())
            }
            return .memoryOwner(.account(0, UInt64(name) ?? 0))
        }
    }

    func refusal(_ refusal: Refusal, of request: KnownRequest?, from client: ClientAddress) -> Response {
        refused.withLock { $0.append(request.map { "\($0.head.path) \($0.memoryOwner.map { "\($0)" } ?? "-")" }) }
        return refusal.problem.response()
    }

    private static func letters(_ letter: UInt8, count: Int) -> Response {
        Response(status: .ok, body: .bytes(ZeroizingBuffer([UInt8](repeating: letter, count: count))))
    }

    private static func text(_ text: String) -> ResponseBody { .bytes(ZeroizingBuffer(text.utf8)) }

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

extension String {
    fileprivate func leftPadded(to width: Int) -> String { String(repeating: "0", count: max(0, width - count)) + self }
}
