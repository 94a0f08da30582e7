internal import EventLoop
internal import HTTPCore
internal import Synchronization

/// One client's connection, on its loop's thread from the accepted socket to the closed one.
///
/// It reads a request, asks the responder for a plan before it reads the body, runs the plan in a task on the
/// same loop, writes the reply, and only then looks at the next request, so replies leave in order.
final class HTTPConnection {
    enum Phase {
        case handshaking
        /// Nothing of a next request has come.
        case idle
        case readingHead
        case readingBody(IncomingRequest)
        case responding
        /// The head of the reply is written; its body is being produced.
        case streaming(OutgoingStream)
        /// The last reply is being written; then the connection closes.
        case finishing
        /// Nothing more is sent; what still comes is thrown away so that the client can read the reply.
        case lingering
        case closed
    }

    let client: ClientAddress
    let listener: HTTPListener
    let isOverLimit: Bool
    var transport: Transport
    var parser = HTTP1RequestParser()
    var phase = Phase.handshaking
    /// The task that answers the current request, while phase is `responding` or `streaming`.
    var task: Task<Void, Never>?
    /// Whether the current request counts among those that are being answered.
    private var holdsRequestSlot = false
    /// What the current request's body counts among the loop's.
    var chargedBodyBytes = 0
    /// Counts the requests, so that a reply which comes too late is not taken for the next one's.
    var requestNumber = 0

    /// What the socket did not take yet.
    private var output = PendingOutput()
    private var lingersAfterOutput = false
    /// Bytes of `output` that were taken since the deadline was last moved.
    private var progress = 0

    private var watch: DescriptorWatch?
    private var isReadingPaused = false
    private var timer: LoopTimer?
    private var deadline: ContinuousClock.Instant?
    private var timerTime: ContinuousClock.Instant?

    /// Bytes of pipelined requests that are read ahead of their turn; beyond it the socket has to wait. More than a
    /// header block may have, so that a head is never waited for in vain.
    private static let readAheadLimit = 32 * 1_024
    private static let readsPerTurn = 8
    /// The most that one TLS record holds.
    private static let recordLimit = 16 * 1_024
    private static let lingerLimit = 256 * 1_024
    /// A client has to take so much of a long reply within the write deadline: 2 KiB/s by default.
    private static let progressWorthMoreTime = 64 * 1_024

    init(transport: consuming Transport, client: ClientAddress, listener: HTTPListener, isOverLimit: Bool) {
        self.transport = transport
        self.client = client
        self.listener = listener
        self.isOverLimit = isOverLimit
    }

    func start() {
        let watch = DescriptorWatch(loop: listener.loop, descriptor: transport.rawValue) { [unowned self] readiness in
            switch readiness {
            case .readable: becameReadable()
            case .writable: becameWritable()
            }
        }
        self.watch = watch
        timer = LoopTimer(loop: listener.loop) { [unowned self] in timerFired() }
        watch.setReading(true)
        setDeadline(after: listener.configuration.handshakeDeadline)
        if !transport.needsHandshake { handshakeFinished() }
    }

    /// Closes after the current reply, at once when there is none.
    func drain() {
        switch phase {
        case .idle, .handshaking: close()
        case .streaming(let stream) where stream.isOpenEnded: endStream()
        default: break
        }
    }

    /// Ends the connection without regard to what is under way.
    func close() {
        if case .closed = phase { return }
        if task != nil {
            cancelTask()
            // The task may hold the connection for a while yet: the client shall not wait for that.
            transport.disconnect()
        }
        phase = .closed
        releaseBody()
        watch?.cancel()
        watch = nil
        timer?.cancel()
        timer = nil
        listener.remove(self)
    }

    // MARK: Readiness

    private func becameReadable() {
        switch phase {
        case .handshaking: continueHandshake()
        case .lingering:
            if !transport.discardInput(limit: Self.lingerLimit, using: listener.readBuffer) { close() }
        case .finishing, .closed: watch?.setReading(false)
        case .idle, .readingHead, .readingBody, .responding, .streaming: readAndProcess()
        }
    }

    private func becameWritable() {
        if case .handshaking = phase { return continueHandshake() }
        flush()
        processInput()
    }

    private func continueHandshake() {
        switch transport.handshake() {
        case .done:
            listener.statistics.completedHandshakes.add(1, ordering: .relaxed)
            watch?.setWriting(false)
            handshakeFinished()
            // The first request may have come in the same flight.
            readAndProcess()
        case .wantsRead: watch?.setWriting(false)
        case .wantsWrite: watch?.setWriting(true)
        case .closed:
            listener.statistics.failedHandshakes.add(1, ordering: .relaxed)
            close()
        }
    }

    private func handshakeFinished() {
        phase = .idle
        setDeadline(after: listener.configuration.idleDeadline)
    }

    private func readAndProcess() {
        for _ in 0..<Self.readsPerTurn {
            guard parser.bufferedByteCount < Self.readAheadLimit else {
                // The requests have to wait for the reply before them, or for a client that does not read replies.
                isReadingPaused = true
                watch?.setReading(false)
                return
            }
            switch transport.read(into: listener.readBuffer) {
            case .done(let count): take(UnsafeRawBufferPointer(rebasing: listener.readBuffer[..<count]))
            case .wantsRead, .wantsWrite: return processInput()
            case .closed: return peerClosed()
            }
            processInput()
            if case .closed = phase { return }
            if !transport.hasPendingBytes { return }
        }
        // Bytes that wait inside TLS do not make the socket readable.
        continueNextTurn()
    }

    /// Takes what was read: bytes of a body straight into it, everything else by way of the parser.
    private func take(_ bytes: UnsafeRawBufferPointer) {
        let count = takeBody(of: bytes)
        guard count < bytes.count else { return }
        parser.append(UnsafeRawBufferPointer(rebasing: bytes[count...]))
    }

    private func peerClosed() {
        // A client that has gone does not want its reply: what has not reached the database is not started.
        close()
    }

    // MARK: Output

    /// Sends the bytes of `listener.writeBuffer`, keeps what the socket does not take, and empties the buffer.
    func sendWriteBuffer() {
        if output.isEmpty {
            let sent = listener.writeBuffer.withUnsafeBytes { write($0) }
            if sent < listener.writeBuffer.count { output.append(Array(listener.writeBuffer[sent...])) }
        } else {
            output.append(listener.writeBuffer)
        }
        listener.writeBuffer.removeAll(keepingCapacity: listener.writeBuffer.capacity <= 256 * 1_024)
    }

    /// Sends `listener.writeBuffer` and then `bytes`, which are read and kept where they are.
    func sendWriteBuffer(followedBy bytes: [UInt8]) {
        // The rest of the first record, so that it is not a short one.
        let prefix = min(bytes.count, max(Self.recordLimit - listener.writeBuffer.count, 0))
        listener.writeBuffer += bytes[..<prefix]
        sendWriteBuffer()
        if case .closed = phase { return }
        guard output.isEmpty, prefix < bytes.count else { return output.append(bytes, from: prefix) }
        let sent = bytes.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[prefix...])) }
        output.append(bytes, from: prefix + sent)
    }

    var hasPendingOutput: Bool { !output.isEmpty }

    private func flush() {
        guard hasPendingOutput else { return }
        while hasPendingOutput {
            let (bytes, offset) = output.front
            let sent = bytes.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            if case .closed = phase { return }
            output.removeFirst(sent)
            if offset + sent < bytes.count { return noteProgress(sent) }
        }
        progress = 0
        watch?.setWriting(false)
        switch phase {
        case .finishing: outputFinished()
        case .idle: setDeadline(after: listener.configuration.idleDeadline)
        case .streaming: streamOutputTaken()
        default: break
        }
    }

    /// Gives a client that takes a long reply slowly, but takes it, more time.
    private func noteProgress(_ sent: Int) {
        progress += sent
        guard progress >= Self.progressWorthMoreTime else { return }
        progress = 0
        setDeadline(after: listener.configuration.writeDeadline)
    }

    /// Writes until everything is taken or the socket is full. Returns how many bytes were taken.
    private func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        var sent = 0
        while sent < bytes.count {
            switch transport.write(UnsafeRawBufferPointer(rebasing: bytes[sent...])) {
            case .done(let count): sent += count
            case .wantsRead: return sent
            case .wantsWrite:
                watch?.setWriting(true)
                return sent
            case .closed:
                close()
                return bytes.count
            }
        }
        return sent
    }

    /// Closes once everything has been written.
    /// - Parameter lingers: Whether the client may still be sending, so that closing at once could take back the reply.
    func finish(lingers: Bool) {
        if case .closed = phase { return }
        phase = .finishing
        lingersAfterOutput = lingers
        setDeadline(after: listener.configuration.writeDeadline)
        if !hasPendingOutput { outputFinished() }
    }

    private func outputFinished() {
        transport.finishWriting()
        guard lingersAfterOutput else { return close() }
        phase = .lingering
        watch?.setReading(true)
        setDeadline(after: listener.configuration.lingerDeadline)
        if !transport.discardInput(limit: Self.lingerLimit, using: listener.readBuffer) { close() }
    }

    // MARK: Deadlines

    /// Sets the time by which the current phase must be over.
    func setDeadline(after duration: Duration) {
        let time = listener.loop.now + duration
        deadline = time
        // Deadlines move with every request; the timer is only moved when it would come too late.
        if let timerTime, timerTime <= time { return }
        timerTime = time
        timer?.schedule(after: duration)
    }

    private func timerFired() {
        timerTime = nil
        guard let deadline else { return }
        let now = listener.loop.now
        if now < deadline { return setDeadline(after: deadline - now) }
        deadlinePassed()
    }

    /// Lets the socket be read again after a pause, unless as much as may be is still waiting.
    func resumeReading() {
        guard isReadingPaused, parser.bufferedByteCount < Self.readAheadLimit else { return }
        isReadingPaused = false
        watch?.setReading(true)
        // Bytes that wait inside TLS do not make the socket readable.
        if transport.hasPendingBytes { continueNextTurn() }
    }

    /// Goes on with what was read after the other connections have had their turn.
    func continueNextTurn() { listener.loop.notifyAtEndOfTurn(self) }

    /// Sets no time: the current phase may last.
    func clearDeadline() { deadline = nil }

    /// Counts the current request among those that are being answered.
    func takeRequestSlot() {
        holdsRequestSlot = true
        listener.requestsInFlight += 1
    }

    /// Counts the current request no longer. Harmless when repeated.
    func releaseRequestSlot() {
        guard holdsRequestSlot else { return }
        holdsRequestSlot = false
        listener.requestsInFlight -= 1
        releaseBody()
    }

    /// Stops what answers the current request; what it still does has no effect.
    func cancelTask() {
        guard let task = task.take() else { return }
        task.cancel()
        releaseRequestSlot()
        requestNumber += 1
        if case .streaming(var stream) = phase {
            stream.wakeAll()
            phase = .streaming(stream)
        }
    }
}

extension HTTPConnection: TurnEndObserver {
    func turnEnded() {
        processInput()
        switch phase {
        case .idle, .readingHead, .readingBody, .responding, .streaming: readAndProcess()
        case .handshaking, .finishing, .lingering, .closed: break
        }
    }
}
