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
    var isReadingPaused = false
    /// The remaining share of this iteration.
    var share = IterationShare()
    /// True while the connection is suspended for other work.
    var givesWay = false
    /// True when a continuation at the end of this iteration is registered.
    var isIterationRequested = false
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

/// The bytes that a socket has not taken yet, in order. Pieces are not copied.
struct PendingOutput {
    private struct Segment {
        var bytes = ZeroizingBuffer()
        /// The number of bytes taken.
        var offset = 0
    }

    private var first = Segment()
    private var others: [Segment] = []

    var isEmpty: Bool { first.offset == first.bytes.count }

    /// Appends the bytes after the first `start`.
    mutating func append(_ bytes: ZeroizingBuffer, from start: Int = 0) {
        guard start < bytes.count else { return }
        if isEmpty {
            first = Segment(bytes: bytes, offset: start)
        } else {
            others.append(Segment(bytes: bytes, offset: start))
        }
    }

    /// The first piece, and the offset in it.
    var front: (bytes: ZeroizingBuffer, offset: Int) { (first.bytes, first.offset) }

    /// Removes bytes from the first piece.
    mutating func removeFirst(_ count: Int) {
        first.offset += count
        if isEmpty { first = others.isEmpty ? Segment() : others.removeFirst() }
    }
}
