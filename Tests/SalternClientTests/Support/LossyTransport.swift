import SalternTesting
import Synchronization

@testable import SalternClient

/// Loses requests and replies, repeats requests, holds them back, and lets a test change what a server says and do
/// something at an exact point of an exchange.
final class LossyTransport: HTTPTransport {
    /// What happens to an exchange.
    enum Fate: Sendable {
        case passes, losesRequest, losesReply, repeats
        /// The sender hears that the connection is lost; the server gets the request with ``deliverLate()``.
        case arrivesLate
    }

    /// A point of an exchange.
    enum Moment: Sendable, CaseIterable {
        case beforeRequest, beforeReply
    }

    /// What is done at one point of one exchange.
    struct Interruption: Sendable {
        /// How many exchanges come before.
        var exchange: Int
        var moment: Moment
        var body: @Sendable () async -> Void
    }

    private struct State {
        var inner: any HTTPTransport
        var late: [HTTPRequest] = []
        var exchanges = 0
        var interruption: Interruption?
        var life: StoreLife?
    }

    private let cut = Mutex<@Sendable () -> Int?>({ nil })
    private let fate = Mutex<@Sendable () -> Fate>({ .passes })
    private let rewrite = Mutex<@Sendable (HTTPRequest, HTTPReply) -> HTTPReply>({ $1 })
    private let answer = Mutex<@Sendable (HTTPRequest) -> HTTPReply?>({ _ in nil })
    private let absence = Mutex<@Sendable (HTTPRequest) -> TransportError?>({ _ in nil })
    private let state: Mutex<State>

    init(_ inner: any HTTPTransport) { state = Mutex(State(inner: inner)) }

    private var inner: any HTTPTransport { state.withLock { $0.inner } }

    var host: String? { inner.host }

    /// What passes is carried by another one from now on.
    func change(to inner: any HTTPTransport) { state.withLock { $0.inner = inner } }

    /// What is sent and heard is of this process; none sends or hears anything after its end.
    func belong(to life: StoreLife) { state.withLock { $0.life = life } }

    private func checkLife() throws(TransportError) {
        if state.withLock({ $0.life })?.hasEnded == true { throw .cancelled }
    }

    /// Sets whether there is no connection, so that nothing is sent.
    func setUnreachable(_ isUnreachable: Bool) { setUnreachable { _ in isUnreachable } }

    /// Sets which requests fail before they are sent.
    func setUnreachable(
        as error: TransportError = .unreachable, _ isUnreachable: @escaping @Sendable (HTTPRequest) -> Bool
    ) {
        absence.withLock { $0 = { isUnreachable($0) ? error : nil } }
    }

    func setFate(_ next: @escaping @Sendable () -> Fate) { fate.withLock { $0 = next } }

    /// From now on more than half of all exchanges go wrong.
    /// - Parameters:
    ///   - seed: What decides which ones.
    ///   - areLate: Whether requests may also arrive late; otherwise those are lost.
    func setBadFates(_ seed: UInt64, areLate: Bool = true) {
        let random = Mutex(SeededGenerator(seed: seed))
        setFate {
            random.withLock { random in
                switch Int.random(in: 0..<9, using: &random) {
                case 0: .losesRequest
                case 1, 2: .losesReply
                case 3: .repeats
                case 4: areLate ? .arrivesLate : .losesRequest
                default: .passes
                }
            }
        }
    }

    /// After how many pieces the next streams are cut, the last piece in its middle; nil for one that goes on.
    func setCuts(_ next: @escaping @Sendable () -> Int?) { cut.withLock { $0 = next } }

    /// The next exchange passes; every later one has this fate.
    func setFateFromSecond(_ fate: Fate) {
        let isFirst = Mutex(true)
        setFate {
            isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? .passes : fate
            }
        }
    }

    func setRewrite(_ next: @escaping @Sendable (HTTPRequest, HTTPReply) -> HTTPReply) {
        rewrite.withLock { $0 = next }
    }

    /// What is answered in the place of the server; nil lets a request through.
    func setAnswer(_ next: @escaping @Sendable (HTTPRequest) -> HTTPReply?) { answer.withLock { $0 = next } }

    /// The next cursor that is shown to the server has expired.
    func expireCursor() {
        let hasExpired = Mutex(false)
        setRewrite { request, reply in
            guard request.target.contains("since="),
                hasExpired.withLock({ hasExpired in
                    defer { hasExpired = true }
                    return !hasExpired
                })
            else { return reply }
            let body = #"{"type":"about:blank","title":"Gone","status":410,"code":"cursor_expired"}"#
            return HTTPReply(head: HTTPReplyHead(status: 410, fields: []), body: Array(body.utf8))
        }
    }

    /// Exchanges are counted from here on.
    func interrupt(_ interruption: Interruption) {
        state.withLock {
            $0.exchanges = 0
            $0.interruption = interruption
        }
    }

    /// - Returns: What was not reached.
    func endInterruption() -> Interruption? { state.withLock { $0.interruption.take() } }

    /// The server gets what was held back; nobody hears what it answers.
    /// - Returns: How many requests it has got.
    @discardableResult
    func deliverLate() async -> Int {
        let requests = state.withLock { state in
            let requests = state.late
            state.late = []
            return requests
        }
        for request in requests { _ = try? await inner.send(request) }
        return requests.count
    }

    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        try checkLife()
        if let error = absence.withLock({ $0 })(request) { throw error }
        let exchange = state.withLock { state in
            state.exchanges += 1
            return state.exchanges - 1
        }
        let fate = self.fate.withLock { $0 }()
        await interrupt(exchange, .beforeRequest)
        try checkLife()
        switch fate {
        case .losesRequest: throw .connectionLost
        case .arrivesLate:
            state.withLock { $0.late.append(request) }
            throw .connectionLost
        default: break
        }
        if let reply = answer.withLock({ $0 })(request) { return reply }
        var reply = try await inner.send(request)
        if case .repeats = fate { reply = try await inner.send(request) }
        await interrupt(exchange, .beforeReply)
        try checkLife()
        if case .losesReply = fate { throw .connectionLost }
        return rewrite.withLock { $0 }(request, reply)
    }

    private func interrupt(_ exchange: Int, _ moment: Moment) async {
        let interruption = state.withLock { state -> Interruption? in
            guard let next = state.interruption, next.exchange == exchange, next.moment == moment else { return nil }
            return state.interruption.take()
        }
        await interruption?.body()
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
        try checkLife()
        let stream = try await inner.stream(request)
        guard let count = cut.withLock({ $0 })() else { return stream }
        return HTTPReplyStream(head: stream.head, body: stream.body.cut(after: count))
    }
}

extension ReplyBody {
    /// The same up to the middle of the piece after `count` others, where the connection is lost.
    fileprivate func cut(after count: Int) -> ReplyBody {
        let reading = Mutex<Task<Void, Never>?>(nil)
        let body = ReplyBody(onRoom: {}, onAbandoned: { reading.withLock { $0 }?.cancel() })
        let task = Task { [weak body] in
            var pieces = makeAsyncIterator()
            var left = count
            while let piece = try? await pieces.next() {
                let isLast = left == 0
                _ = (isLast ? Array(piece.prefix(piece.count / 2)) : piece).withUnsafeBytes { body?.offer($0) }
                if isLast { break }
                left -= 1
            }
            body?.finish(.failure(.connectionLost))
        }
        reading.withLock { $0 = task }
        return body
    }
}
