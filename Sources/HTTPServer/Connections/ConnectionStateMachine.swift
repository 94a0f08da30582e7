internal import HTTPCore

/// Where an HTTP/1.1 connection stands, what comes next, and when it ends.
///
/// Pure: it knows neither sockets nor time nor bytes. `HTTPConnection` tells it what has happened and does what it
/// answers. One request is under way at a time; ``number`` tells a reply that comes too late from one that is awaited.
struct ConnectionStateMachine {
    /// What of a request decides about its connection.
    struct Exchange: Equatable {
        /// Neither `Connection: close` nor HTTP/1.0 without `keep-alive`.
        let wantsKeepAlive: Bool
        /// Whether the client reads chunks; to others a stream ends with the connection.
        let readsChunks: Bool
        /// Whether everything that the client announced of the request has been read.
        var isRead: Bool
        /// Whether its sender was known before the body was read.
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
        /// Nothing of a next request has come.
        case idle
        case readingHead
        /// The head has been read; it is being found out whether the body may be.
        case admitting(Exchange)
        case readingBody(Exchange)
        case responding(Exchange)
        /// The head of the reply has been handed over; its body is being produced.
        case streaming(isOpenEnded: Bool, closes: Bool)
        /// The whole reply has been handed over; the socket has not taken all of it.
        case writing(closes: Bool)
        /// Nothing more is sent; what still comes is thrown away so that the client can read the reply.
        case lingering
        case closed
    }

    /// The end of a reply.
    enum ReplyEnd: Equatable {
        /// With its head, or after so many bytes.
        case known
        case stream(isOpenEnded: Bool)
    }

    /// What the connection does next.
    enum Action: Equatable {
        case none
        /// Look for the next request.
        case readOn
        /// Wait for the first request for as long as the connection is new.
        case awaitFirst
        /// Say that nothing more will be sent, and wait for the client to close.
        case linger
        /// Close and say so first, as far as the client can be told.
        case farewell
        /// Close without a word; what was handed over may still arrive.
        case close
        /// Close, and take back what the client has not taken.
        case abort
        /// Write the stream's proper end and stop its producer.
        case endStream
        /// Answer this, then close.
        case refuse(Refusal)
    }

    private(set) var state = State.handshaking
    /// The request that is under way.
    private(set) var number = 0
    /// Whether the server is going away.
    private(set) var isDraining = false
    /// Whether the connection is there only to be told that there are too many.
    let isOverLimit: Bool

    /// The one rule for closing, for replies and refusals alike: whether the connection ends after a reply.
    /// - Parameters:
    ///   - exchange: What is answered; nil for what is no request, or was given up: nobody knows where the next begins.
    ///   - endsWithConnection: Whether nothing else could tell the client where the reply ends.
    private func closes(after exchange: Exchange?, endsWithConnection: Bool = false) -> Bool {
        guard let exchange else { return true }
        return !exchange.wantsKeepAlive || !exchange.isRead || endsWithConnection || isDraining || isOverLimit
    }

    // MARK: A request

    mutating func handshakeFinished() {
        if state == .handshaking { state = .idle }
    }

    /// Bytes of a next request have come.
    mutating func inputWaits() {
        if state == .idle { state = .readingHead }
    }

    /// A head has been read.
    mutating func headRead(_ exchange: Exchange) {
        guard state == .idle || state == .readingHead else { preconditionFailure("no head was awaited") }
        number += 1
        state = .admitting(exchange)
    }

    /// The body of the request may be read.
    /// - Parameters:
    ///   - number: Which request was admitted.
    ///   - isIdentified: Whether it is known who sends it.
    /// - Returns: Whether that is still wanted.
    mutating func admitted(_ number: Int, isIdentified: Bool = false) -> Bool {
        guard number == self.number, case .admitting(var exchange) = state else { return false }
        exchange.isIdentified = isIdentified
        state = .readingBody(exchange)
        return true
    }

    /// The rest of the body may not be read before it is known who sends it.
    /// - Returns: Whether it is being read.
    mutating func needsIdentification() -> Bool {
        guard case .readingBody(let exchange) = state else { return false }
        state = .admitting(exchange)
        return true
    }

    /// The request is complete.
    mutating func bodyRead() {
        guard case .readingBody(var exchange) = state else { preconditionFailure("no body was awaited") }
        exchange.isRead = true
        state = .responding(exchange)
    }

    /// A reply to a request, or a refusal of one: it is handed over right after.
    /// - Returns: Whether the connection closes after it; nil when nobody waits for this reply any more.
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

    /// What came is no request, or is given up: a refusal is handed over right after.
    /// - Returns: Whether the client can still be told.
    mutating func refused() -> Bool {
        switch state {
        case .idle, .readingHead, .admitting, .readingBody, .responding:
            number += 1
            state = .writing(closes: closes(after: nil))
            return true
        case .handshaking, .streaming, .writing, .lingering, .closed: return false
        }
    }

    /// The producer of a stream has returned, or what it made has been broken off.
    mutating func streamEnded(isComplete: Bool) -> Action {
        guard case .streaming(_, let closes) = state else { return .none }
        number += 1
        // Without the proper end the client knows that something is missing.
        guard isComplete else { return .close }
        state = .writing(closes: closes || isDraining)
        return .none
    }

    /// The socket has taken everything that was handed over.
    mutating func outputTaken() -> Action {
        guard case .writing(let closes) = state else { return .none }
        // A reply that was handed over before the server began to go away is its connection's last all the same.
        if closes || isDraining {
            state = .lingering
            return .linger
        }
        state = .idle
        return .readOn
    }

    // MARK: The end

    /// The server goes away: what is under way is finished, and nothing is begun but the first request of a connection
    /// that is new: its client could not know, and has nothing to tell a closed connection from a failed request.
    /// - Parameter isNew: Whether the connection was accepted so recently that its first request may be on its way.
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

    /// The server has waited long enough for first requests, and for those of nobody it knows.
    mutating func drainGracePassed() -> Action {
        switch state {
        case .idle: .farewell
        case .handshaking: .close
        case .readingHead: .refuse(.overloaded(retryAfter: 1))
        case .readingBody(let exchange): exchange.isIdentified ? .none : .refuse(.overloaded(retryAfter: 1))
        case .admitting, .responding, .streaming, .writing, .lingering, .closed: .none
        }
    }

    /// What the state waits for has not come in time.
    func deadlinePassed() -> Action {
        switch state {
        case .idle: .farewell
        case .readingHead: .refuse(.headerTimeout)
        case .readingBody: .refuse(.bodyTimeout)
        case .admitting, .responding: .refuse(.handlerTimeout)
        // The head has gone: that something is missing can only be said by closing.
        case .streaming, .writing: .abort
        case .handshaking, .lingering: .close
        case .closed: .none
        }
    }

    /// The connection has been closed, by whomever. Returns whether it was open.
    mutating func closed() -> Bool {
        if state == .closed { return false }
        number += 1
        state = .closed
        return true
    }

    // MARK: What holds now

    /// Whether a head may be taken from what was read.
    var awaitsHead: Bool { state == .idle || state == .readingHead }

    var isStreaming: Bool { if case .streaming = state { true } else { false } }

    var isReadingBody: Bool { if case .readingBody = state { true } else { false } }

    /// Whether what the client sends is of any interest. While a request is answered, further ones are read ahead.
    var readsInput: Bool {
        switch state {
        case .idle, .readingHead, .admitting, .readingBody, .responding, .streaming, .writing(closes: false): true
        case .handshaking, .writing(closes: true), .lingering, .closed: false
        }
    }

    /// Whether a request is under way, as far as the server knows.
    var hasRequest: Bool {
        switch state {
        case .handshaking, .idle, .readingHead, .lingering, .closed: false
        case .admitting, .readingBody, .responding, .streaming, .writing: true
        }
    }

    /// Whether the client can make the server wait with what it does not take.
    var writesOutput: Bool {
        switch state {
        case .streaming, .writing: true
        case .handshaking, .idle, .readingHead, .admitting, .readingBody, .responding, .lingering, .closed: false
        }
    }
}
