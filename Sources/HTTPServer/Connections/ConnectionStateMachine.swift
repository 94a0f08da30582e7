internal import HTTPCore

/// The state of an HTTP/1.1 connection, which decides the next step and the end.
///
/// Pure: it has no sockets, time or bytes. `HTTPConnection` reports events and executes the returned actions. One
/// request is active at a time. ``number`` distinguishes a late reply from an expected one.
struct ConnectionStateMachine {
    /// The properties of a request that affect its connection.
    struct Exchange: Equatable {
        /// True without `Connection: close`, and for HTTP/1.0 only with `keep-alive`.
        let wantsKeepAlive: Bool
        /// True when the client reads chunks. For others, a stream ends with the connection.
        let readsChunks: Bool
        /// True when the whole announced request has been read.
        var isRead: Bool
        /// True when the sender was identified before the body was read.
        var isIdentified = false

        init(wantsKeepAlive: Bool, readsChunks: Bool, isRead: Bool) {
            self.wantsKeepAlive = wantsKeepAlive
            self.readsChunks = readsChunks
            self.isRead = isRead
        }

        init(_ head: RequestHead) {
            self.init(
                wantsKeepAlive: head.wantsKeepAlive, readsChunks: head.versionMinor > 0, isRead: head.framing == .none)
        }
    }

    enum State: Equatable {
        case handshaking
        /// No byte of a next request has arrived.
        case idle
        case readingHead
        /// The head is read, and the permission to read the body is pending.
        case admitting(Exchange)
        case readingBody(Exchange)
        case responding(Exchange)
        /// The head of the reply is handed over. Its body is being produced.
        case streaming(isOpenEnded: Bool, closes: Bool)
        /// The whole reply is handed over. The socket has not taken all of it.
        case writing(closes: Bool)
        /// Sending is finished. Received bytes are discarded, so that the client can read the reply.
        case lingering
        case closed
    }

    /// The end of a reply's body.
    enum ReplyEnd: Equatable {
        /// With its head, or after a known number of bytes.
        case known
        case stream(isOpenEnded: Bool)
    }

    /// The next action of the connection.
    enum Action: Equatable {
        case none
        /// Read the next request.
        case readOn
        /// Wait for the first request while the connection is new.
        case awaitFirst
        /// Announce the end of data, and wait for the client to close.
        case linger
        /// Announce the end if possible, then close.
        case farewell
        /// Close without an announcement. Sent bytes may still arrive.
        case close
        /// Close, and discard the bytes that the client has not taken.
        case abort
        /// Write the stream's proper end and stop its producer.
        case endStream
        /// Send this refusal, then close.
        case refuse(Refusal)
    }

    private(set) var state = State.handshaking
    /// The number of the active request.
    private(set) var number = 0
    /// True while the server is stopping.
    private(set) var isDraining = false
    /// True for a connection that only receives the reply about too many connections.
    let isOverLimit: Bool

    /// Returns whether the connection closes after a reply. The same rule applies to replies and refusals.
    /// - Parameters:
    ///   - exchange: The answered request. Nil for invalid or abandoned input, after which the next request's start is
    ///     unknown.
    ///   - endsWithConnection: True when only the end of the connection marks the end of the reply.
    private func closes(after exchange: Exchange?, endsWithConnection: Bool = false) -> Bool {
        guard let exchange else { return true }
        return !exchange.wantsKeepAlive || !exchange.isRead || endsWithConnection || isDraining || isOverLimit
    }

    // MARK: A request

    mutating func handshakeFinished() {
        if state == .handshaking { state = .idle }
    }

    /// Notes bytes of a next request.
    mutating func inputWaits() {
        if state == .idle { state = .readingHead }
    }

    /// Notes a complete head.
    mutating func headRead(_ exchange: Exchange) {
        guard state == .idle || state == .readingHead else { preconditionFailure("no head was awaited") }
        number += 1
        state = .admitting(exchange)
    }

    /// Permits reading the body of a request.
    /// - Parameters:
    ///   - number: The number of the admitted request.
    ///   - isIdentified: True when its sender is identified.
    /// - Returns: True if the request is still active.
    mutating func admitted(_ number: Int, isIdentified: Bool = false) -> Bool {
        guard number == self.number, case .admitting(var exchange) = state else { return false }
        exchange.isIdentified = isIdentified
        state = .readingBody(exchange)
        return true
    }

    /// Suspends the body until its sender is identified.
    /// - Returns: True if a body is being read.
    mutating func needsIdentification() -> Bool {
        guard case .readingBody(let exchange) = state else { return false }
        state = .admitting(exchange)
        return true
    }

    /// Notes that the request is complete.
    mutating func bodyRead() {
        guard case .readingBody(var exchange) = state else { preconditionFailure("no body was awaited") }
        exchange.isRead = true
        state = .responding(exchange)
    }

    /// Notes a reply or refusal of a request. The caller hands it over directly afterwards.
    /// - Returns: True if the connection closes after it. Nil when the reply is too late.
    mutating func replied(to number: Int, end: ReplyEnd = .known) -> Bool? {
        guard number == self.number else { return nil }
        switch state {
        case .admitting(let exchange), .responding(let exchange):
            guard case .stream(let isOpenEnded) = end else {
                let closes = closes(after: exchange)
                state = .writing(closes: closes)
                return closes
            }
            let closes = closes(after: exchange, endsWithConnection: !exchange.readsChunks)
            state = .streaming(isOpenEnded: isOpenEnded, closes: closes)
            return closes
        case .handshaking, .idle, .readingHead, .readingBody, .streaming, .writing, .lingering, .closed: return nil
        }
    }

    /// Notes a refusal of invalid or abandoned input. The caller hands it over directly afterwards.
    /// - Returns: True if the client can still receive it.
    mutating func refused() -> Bool {
        switch state {
        case .idle, .readingHead, .admitting, .readingBody, .responding:
            number += 1
            state = .writing(closes: closes(after: nil))
            return true
        case .handshaking, .streaming, .writing, .lingering, .closed: return false
        }
    }

    /// Notes the end of a stream: its producer has returned, or its output was broken off.
    mutating func streamEnded(isComplete: Bool) -> Action {
        guard case .streaming(_, let closes) = state else { return .none }
        number += 1
        // Without the proper end, the client detects the missing part.
        guard isComplete else { return .close }
        state = .writing(closes: closes || isDraining)
        return .none
    }

    /// Notes that the socket has taken all output.
    mutating func outputTaken() -> Action {
        guard case .writing(let closes) = state else { return .none }
        // A reply that was handed over before the stop is still the last of its connection.
        if closes || isDraining {
            state = .lingering
            return .linger
        }
        state = .idle
        return .readOn
    }

    // MARK: The end

    /// Starts the stop of the server: active requests are finished, and no new ones are started.
    ///
    /// Exception: the first request of a new connection. Its client cannot distinguish a closed connection from a
    /// failed request.
    /// - Parameter isNew: True when the connection was accepted so recently that its first request may be in transit.
    mutating func drain(isNew: Bool) -> Action {
        isDraining = true
        switch state {
        case .idle: return isNew && number == 0 ? .awaitFirst : .farewell
        case .handshaking: return isNew ? .awaitFirst : .close
        case .streaming(isOpenEnded: true, _): return .endStream
        case .readingHead, .admitting, .readingBody, .responding, .streaming, .writing, .lingering, .closed:
            return .none
        }
    }

    /// Ends the wait for first requests, and for requests of unidentified senders.
    mutating func drainGracePassed() -> Action {
        switch state {
        case .idle: .farewell
        case .handshaking: .close
        case .readingHead: .refuse(.overloaded(retryAfter: 1))
        case .readingBody(let exchange): exchange.isIdentified ? .none : .refuse(.overloaded(retryAfter: 1))
        case .admitting, .responding, .streaming, .writing, .lingering, .closed: .none
        }
    }

    /// Returns the action for an expired time limit of the state.
    func deadlinePassed() -> Action {
        switch state {
        case .idle: .farewell
        case .readingHead: .refuse(.headerTimeout)
        case .readingBody: .refuse(.bodyTimeout)
        case .admitting, .responding: .refuse(.handlerTimeout)
        // The head is sent. Only closing can announce a missing part.
        case .streaming, .writing: .abort
        case .handshaking, .lingering: .close
        case .closed: .none
        }
    }

    /// Notes that either side closed the connection. Returns whether it was open.
    mutating func closed() -> Bool {
        if state == .closed { return false }
        number += 1
        state = .closed
        return true
    }

    // MARK: Present conditions

    /// True when a head may be taken from the received bytes.
    var awaitsHead: Bool { state == .idle || state == .readingHead }

    var isStreaming: Bool { if case .streaming = state { true } else { false } }

    var isReadingBody: Bool { if case .readingBody = state { true } else { false } }

    /// True when received bytes are read. During a reply, further requests are read ahead.
    var readsInput: Bool {
        switch state {
        case .idle, .readingHead, .admitting, .readingBody, .responding, .streaming, .writing(closes: false): true
        case .handshaking, .writing(closes: true), .lingering, .closed: false
        }
    }

    /// True when a known request is active.
    var hasRequest: Bool {
        switch state {
        case .handshaking, .idle, .readingHead, .lingering, .closed: false
        case .admitting, .readingBody, .responding, .streaming, .writing: true
        }
    }

    /// True when a client that does not read can delay the server.
    var writesOutput: Bool {
        switch state {
        case .streaming, .writing: true
        case .handshaking, .idle, .readingHead, .admitting, .readingBody, .responding, .lingering, .closed: false
        }
    }
}
