internal import EventLoop
internal import HTTPCore
internal import Synchronization

/// One client's connection, on its loop's thread from the accepted socket to the closed one.
///
/// It reads a request and requests a plan from the responder before it reads the body. The plan runs in a task on the
/// same loop. The next request is read after the reply is written, so replies leave in order.
/// ``ConnectionStateMachine`` decides the next step. This type owns socket, time and memory.
final class HTTPConnection {
    let client: ClientAddress
    let listener: HTTPListener
    var transport: Transport
    var isIterationEndRequested = false
    var parser = HTTP1RequestParser()
    var machine: ConnectionStateMachine

    /// The active request, until its reply begins.
    var known: KnownRequest?
    /// The request whose body is being received.
    var incoming: IncomingRequest?
    /// True when the active request has the method HEAD.
    var answersHead = false
    /// The reply in production.
    var stream: OutgoingStream?
    /// The task that identifies the sender of the current request, or answers it.
    var task: Task<Void, Never>?
    /// The network whose place the current request holds.
    private var placeHolder: UInt64?

    /// The output that the socket has not taken yet, and its charge as unread output.
    var output = PendingOutput()
    var outputCharge: MemoryCharge?
    var outputMeter = ProgressMeter()
    /// The end of the window of `outputMeter`.
    var outputWindowEnd: ContinuousClock.Instant?
    /// The number of bytes that the kernel has taken.
    var writtenCount = 0
    var bodyMeter = ProgressMeter()

    let acceptTime: ContinuousClock.Instant
    /// The number of the connection at its listener, in the order of acceptance. Connections of one iteration have the
    /// same time.
    let number: Int

    var watch: DescriptorWatch?
    private var isReadingPaused = false
    /// The remaining share of this iteration.
    var share = IterationShare()
    /// True while the connection is suspended for other work.
    private var givesWay = false
    /// True when a continuation at the end of this iteration is registered.
    private var isIterationRequested = false
    private var timer: LoopTimer?
    private(set) var deadline: ContinuousClock.Instant?
    private var timerTime: ContinuousClock.Instant?

    init(
        transport: consuming Transport, client: ClientAddress, listener: HTTPListener, number: Int, isOverLimit: Bool
    ) {
        self.transport = transport
        self.number = number
        self.client = client
        self.listener = listener
        acceptTime = listener.loop.now
        machine = ConnectionStateMachine(isOverLimit: isOverLimit)
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

    /// Closes after the current reply. Without one it closes at once, or later if it is new.
    func drain() { perform(machine.drain(isNew: listener.loop.now < endOfNewness)) }

    /// The end of the time in which a client may be about to send its first request.
    private var endOfNewness: ContinuousClock.Instant { acceptTime + listener.configuration.handshakeDeadline }

    /// Ends requests of unidentified senders that are unfinished since ``drain()``.
    func drainGracePassed() { perform(machine.drainGracePassed()) }

    /// Ends the connection, also during a request.
    func close() {
        guard machine.closed() else { return }
        if task != nil || givesWay {
            // Suspended work holds the connection for some time, but the client should not wait for that.
            transport.disconnect()
        }
        dropRequest()
        dropStream()
        output = PendingOutput()
        outputCharge = nil
        watch?.cancel()
        watch = nil
        timer?.cancel()
        timer = nil
        listener.remove(self)
    }

    /// Executes an action of the state machine. The caller reads the next request itself.
    func perform(_ action: ConnectionStateMachine.Action) {
        switch action {
        case .none: break
        case .readOn: setDeadline(after: listener.configuration.idleDeadline)
        case .awaitFirst: setDeadline(at: endOfNewness)
        case .linger: linger()
        case .farewell:
            transport.sendCloseNotify()
            close()
        case .close: close()
        case .abort:
            transport.resetOnClose()
            close()
        case .endStream: endStream(isComplete: true)
        case .refuse(let refusal): refuse(refusal)
        }
    }

    // MARK: Readiness

    private func becameReadable() {
        switch machine.state {
        case .handshaking: continueHandshake()
        case .lingering: discardInput()
        default:
            guard machine.readsInput, !isBodyWaiting else { return pauseReading() }
            readAndProcess()
        }
    }

    private func becameWritable() {
        if machine.state == .handshaking { return continueHandshake() }
        flush()
        processInput()
    }

    private func continueHandshake() {
        switch transport.handshake() {
        case .done:
            listener.statistics.completedHandshakes.add(1, ordering: .relaxed)
            watch?.setWriting(false)
            handshakeFinished()
            // The first request may have arrived with the handshake.
            readAndProcess()
        case .wantsRead: watch?.setWriting(false)
        case .wantsWrite: watch?.setWriting(true)
        case .closed:
            listener.statistics.failedHandshakes.add(1, ordering: .relaxed)
            close()
        }
    }

    private func handshakeFinished() {
        machine.handshakeFinished()
        // While the server stops, the time limit of a new connection stays.
        if !machine.isDraining { setDeadline(after: listener.configuration.idleDeadline) }
    }

    // MARK: Deadlines

    /// Sets the time limit of the next event.
    func setDeadline(after duration: Duration) {
        setDeadline(at: listener.loop.now + duration)
    }

    /// Sets the time limit of the next event.
    func setDeadline(at time: ContinuousClock.Instant) {
        deadline = time
        // Time limits change with every request. The timer is only moved when it would fire too late.
        if let timerTime, timerTime <= time { return }
        timerTime = time
        timer?.schedule(after: time - listener.loop.now)
    }

    /// Removes the time limit.
    func clearDeadline() { deadline = nil }

    private func timerFired() {
        timerTime = nil
        guard let deadline else { return }
        if listener.loop.now < deadline { return setDeadline(at: deadline) }
        if isBodyOutOfTurn() {
            refuse(listener.overload)
        } else {
            if isBodyMoving() || isOutputMoving() { return }
            perform(machine.deadlinePassed())
        }
        processInput()
    }

    // MARK: The current request

    /// Counts the current request as active. Returns whether there is a place for it.
    func takePlace(for network: UInt64) -> Bool {
        guard listener.places.take(for: network) else { return false }
        placeHolder = network
        return true
    }

    /// Ends the count of the current request. Further calls have no effect.
    func releasePlace() {
        if let network = placeHolder.take() { listener.places.give(of: network) }
    }

    /// Stops the work on the current request. Its later results have no effect.
    func dropRequest() {
        known = nil
        incoming = nil
        task.take()?.cancel()
        releasePlace()
    }
}

extension HTTPConnection: IterationObserver {
    func iterationEnded() {
        isIterationRequested = false
        goOn()
    }
}

extension HTTPConnection {
    /// The bytes of pipelined requests that are read ahead. Above it, the socket waits. It exceeds the limit of a
    /// header block, so a head always fits.
    private static let readAheadLimit = 32 * 1_024
    private static let lingerLimit = 256 * 1_024

    private func readAndProcess() {
        guard !givesWay else { return pauseReading() }
        share.begin(listener.loop.now)
        while share.readsLeft > 0, share.stepsLeft > 0 {
            guard parser.bufferedByteCount < Self.readAheadLimit else {
                // The requests have to wait for the earlier reply, or for a client that does not read replies.
                return pauseReading()
            }
            share.noteRead()
            switch transport.read(into: listener.readBuffer) {
            case .done(let count):
                let bytes = UnsafeMutableRawBufferPointer(rebasing: listener.readBuffer[..<count])
                take(UnsafeRawBufferPointer(bytes))
                // The next connection uses this buffer, and the bytes can be a key.
                bytes.wipe()
            case .wantsRead, .wantsWrite: return processInput()
            // A client that has closed needs no reply. Statements that have not reached the database are not started.
            case .closed: return close()
            }
            processInput()
            guard machine.readsInput, !isReadingPaused, transport.hasPendingBytes else { return }
        }
        // Bytes inside TLS do not make the socket readable.
        continueNextIteration()
    }

    /// Takes received bytes: those of a body directly, others through the parser.
    private func take(_ bytes: UnsafeRawBufferPointer) {
        let count = takeBody(of: bytes)
        guard count < bytes.count else { return }
        parser.append(UnsafeRawBufferPointer(rebasing: bytes[count...]))
    }

    /// Takes all available events from the parser.
    func processInput() {
        guard !givesWay else { return }
        share.begin(listener.loop.now)
        while true {
            if machine.isReadingBody {
                guard readBody() else { return }
                continue
            }
            // A client that does not read its replies gets no further ones.
            guard machine.awaitsHead else { return }
            guard share.stepsLeft > 0 else { return continueNextIteration() }
            guard let event = nextEvent() else { return waitForHead() }
            guard case .head(let head) = event else { continue }
            share.noteStep()
            admit(head)
        }
    }

    /// Returns the parser's next event. Returns nil without one, and after invalid input, which has been refused then.
    func nextEvent() -> HTTP1Event? {
        do throws(HTTP1Error) {
            return try parser.next()
        } catch {
            refuse(error.refusal)
            return nil
        }
    }

    private func waitForHead() {
        resumeReading()
        guard machine.state == .idle, parser.bufferedByteCount > 0 else { return }
        machine.inputWaits()
        setDeadline(after: listener.configuration.headerDeadline)
    }

    /// Stops reading, so that the client waits.
    func pauseReading() {
        isReadingPaused = true
        watch?.setReading(false)
    }

    /// Resumes reading after a pause, unless the maximum is still buffered.
    func resumeReading() {
        guard isReadingPaused, machine.readsInput, !isBodyWaiting, !givesWay,
            parser.bufferedByteCount < Self.readAheadLimit
        else { return }
        isReadingPaused = false
        watch?.setReading(true)
        // Bytes inside TLS do not make the socket readable.
        if transport.hasPendingBytes { continueNextIteration() }
    }

    /// Continues with received bytes after the other connections have run.
    private func continueNextIteration() {
        if isIterationRequested { return }
        isIterationRequested = true
        listener.loop.notifyAtIterationEnd(self)
    }

    /// Continues after all other work has run, including suspended work, because the connection has used up its share.
    func giveWay() {
        if givesWay { return }
        givesWay = true
        pauseReading()
        let connection = LoopBound(self, loop: listener.loop)
        Task(executorPreference: listener.loop) {
            await connection.loop.giveWay()
            connection.value.wayIsGiven()
        }
    }

    private func wayIsGiven() {
        givesWay = false
        goOn()
        resumeReading()
    }

    /// Processes received bytes, and reads further ones.
    func goOn() {
        processInput()
        if machine.readsInput, !isBodyWaiting { readAndProcess() }
    }

    /// Announces the end of data, and gives the client time to read.
    ///
    /// Closing a socket with unread input would discard sent bytes.
    func linger() {
        transport.finishWriting()
        isReadingPaused = false
        watch?.setReading(true)
        setDeadline(after: listener.configuration.lingerDeadline)
        discardInput()
    }

    /// Discards the client's remaining bytes.
    func discardInput() {
        if !transport.discardInput(limit: Self.lingerLimit, using: listener.readBuffer) { close() }
    }
}

/// The share of one connection in an iteration of its loop. Pure: the caller passes the iteration.
///
/// Bytes alone are no measure: a few of them can be a request, or a chunk of a body.
struct IterationShare {
    /// Reads of the socket, of at most 64 KiB or a TLS record.
    static let reads = 8
    /// Requests, and pieces of bodies.
    static let steps = 16
    static let writtenBytes = 512 * 1_024

    private var turn: ContinuousClock.Instant?
    private(set) var readsLeft = reads
    private(set) var stepsLeft = steps
    private(set) var writtenBytesLeft = writtenBytes

    /// Resets the share in a new iteration.
    mutating func begin(_ turn: ContinuousClock.Instant) {
        if turn != self.turn { self = IterationShare(turn: turn) }
    }

    init(turn: ContinuousClock.Instant? = nil) { self.turn = turn }

    mutating func noteRead() { readsLeft -= 1 }

    mutating func noteStep() { stepsLeft -= 1 }

    mutating func noteWritten(_ count: Int) { writtenBytesLeft -= count }
}
