internal import Foundation

/// One task of a session, and whoever waits for what it brings.
final class URLSessionTransfer: Sendable {
    private struct State {
        var head: HTTPReplyHead?
        /// What has come and was not handed on.
        var body: [UInt8] = []
        var isSuspended = false
        var end: Result<Void, TransportError>?
        var waiter: CheckedContinuation<Result<Void, TransportError>, Never>?
        weak var reader: ReplyBody?
    }

    private let task: any TransferTask
    /// The longest body; nil for a stream, which is handed on as it comes.
    private let limit: Int?
    private let state = Locked(State())

    /// How much of a stream may wait for its reader (a task that is told to wait has read on meanwhile): a server may be
    /// hostile.
    private static let waitingByteLimit = 24 << 20

    init(_ task: any TransferTask, limit: Int?) {
        self.task = task
        self.limit = limit
    }

    /// Says who reads the stream; before it is run.
    func connect(_ reader: ReplyBody) { state.withLock { $0.reader = reader } }

    /// Runs the task until its reply is there: all of it, or for a stream its head.
    func run() async throws(TransportError) -> HTTPReplyHead {
        let outcome: Result<Void, TransportError> = await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let end = state.withLock { state in
                    if state.end == nil { state.waiter = waiter }
                    return state.end
                }
                if let end { return waiter.resume(returning: end) }
                task.resume()
            }
        } onCancel: {
            end(.failure(.cancelled))
        }
        try outcome.get()
        guard let head = state.withLock({ $0.head }) else { throw .unacceptableReply }
        return head
    }

    /// The whole body, once.
    func takeBody() -> [UInt8] {
        state.withLock { state in
            defer { state.body = [] }
            return state.body
        }
    }

    // MARK: What the session says

    /// Takes the head.
    /// - Returns: Whether the body is wanted.
    func receive(_ response: URLResponse) -> Bool {
        guard let response = response as? HTTPURLResponse else { return refuse() }
        let fields = response.allHeaderFields.compactMap { name, value in
            (name as? String).flatMap { name in (value as? String).map { (name: name, value: $0) } }
        }
        var budget = FieldBudget()
        guard fields.allSatisfy({ budget.take($0.name.utf8.count + $0.value.utf8.count) }) else { return refuse() }
        let waiter = state.withLock { state in
            state.head = HTTPReplyHead(status: response.statusCode, fields: fields)
            return limit == nil ? state.waiter.take() : nil
        }
        waiter?.resume(returning: .success(()))
        return true
    }

    /// Takes a piece of the body.
    func receive(_ data: Data) {
        let mayGoOn = withReader { state, reader in
            guard state.end == nil else { return true }
            guard state.body.count + data.count <= limit ?? Self.waitingByteLimit else { return false }
            state.body += data
            handOn(&state, to: reader)
            return true
        }
        if !mayGoOn { end(.failure(limit == nil ? .connectionLost : .unacceptableReply)) }
    }

    private func refuse() -> Bool {
        end(.failure(.unacceptableReply))
        return false
    }

    // MARK: What others say

    /// The number of bytes that have moved in both directions.
    var movedByteCount: Int64 { task.movedByteCount }

    /// The reader has room again.
    func goOn() { withReader { state, reader in handOn(&state, to: reader) } }

    /// The reader outlives the lock: who holds the last reference to it is called by its end.
    private func withReader<Answer>(_ body: (inout State, ReplyBody?) -> sending Answer) -> Answer {
        let reader = state.withLock { $0.reader }
        return withExtendedLifetime(reader) { state.withLock { body(&$0, reader) } }
    }

    /// Hands on what there is, and lets the task go on, or wait, as the reader has room. Under the lock, so that going on
    /// and waiting never cross.
    private func handOn(_ state: inout State, to reader: ReplyBody?) {
        guard let reader else { return }
        if !state.body.isEmpty, state.body.withUnsafeBytes({ reader.offer($0) }) { state.body = [] }
        if state.body.isEmpty == state.isSuspended {
            state.isSuspended.toggle()
            if state.isSuspended { task.suspend() } else { task.resume() }
        }
        if state.body.isEmpty, let end = state.end { reader.finish(end) }
    }

    /// Nothing more comes: tells whoever waits or reads, and ends the task. The second call does nothing.
    func end(_ outcome: Result<Void, TransportError>) {
        let waiter = withReader { state, reader in
            if state.end == nil { state.end = outcome }
            handOn(&state, to: reader)
            return state.waiter.take()
        }
        waiter?.resume(returning: outcome)
        task.cancel()
    }
}

/// What a transfer asks of the session's task.
protocol TransferTask: Sendable {
    func resume()
    func suspend()
    func cancel()
    /// The number of bytes that have moved in both directions.
    var movedByteCount: Int64 { get }
}

extension URLSessionTask: TransferTask {
    var movedByteCount: Int64 { countOfBytesSent &+ countOfBytesReceived }
}
