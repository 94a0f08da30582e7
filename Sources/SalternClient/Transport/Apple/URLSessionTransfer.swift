internal import Foundation

/// One task of a session, and the caller or reader that waits for its data.
final class URLSessionTransfer: Sendable {
    private struct State {
        var head: HTTPReplyHead?
        /// The bytes that have arrived and were not passed on.
        var body: [UInt8] = []
        var isSuspended = false
        var end: Result<Void, TransportError>?
        var waiter: CheckedContinuation<Result<Void, TransportError>, Never>?
        weak var reader: ReplyBody?
    }

    private let task: any TransferTask
    /// The longest body, in bytes; nil for a stream, which is passed on as it arrives.
    private let limit: Int?
    private let state = Locked(State())

    /// The maximum number of bytes of a stream that may wait for its reader, against a hostile server. A suspended task
    /// may still have read some.
    private static let waitingByteLimit = 24 << 20

    init(_ task: any TransferTask, limit: Int?) {
        self.task = task
        self.limit = limit
    }

    /// Sets the reader of the stream, before it runs.
    func connect(_ reader: ReplyBody) { state.withLock { $0.reader = reader } }

    /// Runs the task until its reply has arrived: the whole reply, or for a stream its head.
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

    /// Returns the whole body, once.
    func takeBody() -> [UInt8] {
        state.withLock { state in
            defer { state.body = [] }
            return state.body
        }
    }

    // MARK: Calls of the session

    /// Receives the head.
    /// - Returns: True to receive the body.
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

    /// Receives a piece of the body.
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

    // MARK: Calls of others

    var movedByteCount: Int64 { task.movedByteCount }

    /// Continues after the reader has room again.
    func goOn() { withReader { state, reader in handOn(&state, to: reader) } }

    /// Calls `body` under the lock. The reader outlives the lock, because releasing its last reference calls back.
    private func withReader<Answer>(_ body: (inout State, ReplyBody?) -> sending Answer) -> Answer {
        let reader = state.withLock { $0.reader }
        return withExtendedLifetime(reader) { state.withLock { body(&$0, reader) } }
    }

    /// Passes on the received bytes. The task continues or waits, depending on the reader's room. It runs under the
    /// lock, so that continuing and waiting never interleave.
    private func handOn(_ state: inout State, to reader: ReplyBody?) {
        guard let reader else { return }
        if !state.body.isEmpty, state.body.withUnsafeBytes({ reader.offer($0) }) { state.body = [] }
        if state.body.isEmpty == state.isSuspended {
            state.isSuspended.toggle()
            if state.isSuspended { task.suspend() } else { task.resume() }
        }
        if state.body.isEmpty, let end = state.end { reader.finish(end) }
    }

    /// Ends the task, and completes the waiting caller or the reader. A second call does nothing.
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

/// The functions of the session's task that a transfer uses.
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
