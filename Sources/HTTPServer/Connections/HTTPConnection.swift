internal import EventLoop
internal import HTTPCore
internal import Synchronization

/// One client's connection, on its loop's thread from the accepted socket to the closed one.
///
/// It reads a request, asks the responder for a plan before it reads the body, runs the plan in a task on the
/// same loop, writes the reply, and only then looks at the next request, so replies leave in order. What comes next is
/// ``ConnectionStateMachine``'s to say; here are the socket, the time and the memory.
final class HTTPConnection {
    let client: ClientAddress
    let listener: HTTPListener
    var transport: Transport
    var isIterationEndRequested = false
    var parser = HTTP1RequestParser()
    var machine: ConnectionStateMachine

    /// The request that is under way, until its reply begins.
    var known: KnownRequest?
    /// The request whose body is arriving.
    var incoming: IncomingRequest?
    /// Whether the request that is under way is of the method HEAD.
    var answersHead = false
    /// The reply that is being produced.
    var stream: OutgoingStream?
    /// The task that identifies the sender of the current request, or answers it.
    var task: Task<Void, Never>?
    /// Whose place among those that are being answered the current request holds.
    private var placeHolder: UInt64?

    /// What the socket did not take yet, and what that counts among the unread output.
    var output = PendingOutput()
    var outputCharge: MemoryCharge?
    var outputMeter = ProgressMeter()
    /// When the window of `outputMeter` is over.
    var outputWindowEnd: ContinuousClock.Instant?
    /// The bytes that the kernel has taken.
    var writtenCount = 0
    var bodyMeter = ProgressMeter()

    let acceptTime: ContinuousClock.Instant
    /// Which of its listener's connections this is, in the order in which they were accepted: those of one turn of the loop
    /// have one time.
    let number: Int

    var watch: DescriptorWatch?
    var isReadingPaused = false
    /// What it may still do in this turn.
    var share = IterationShare()
    /// Whether it waits until everybody else has had their turn.
    var givesWay = false
    /// Whether the loop has been asked for the end of this turn.
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

    /// Closes after the current reply; when there is none at once, or a little later if none has been asked for yet.
    func drain() { perform(machine.drain(isNew: listener.loop.now < endOfNewness)) }

    /// Until when a client may be about to send its first request.
    private var endOfNewness: ContinuousClock.Instant { acceptTime + listener.configuration.handshakeDeadline }

    /// Lets go of what nobody known has finished since ``drain()``.
    func drainGracePassed() { perform(machine.drainGracePassed()) }

    /// Ends the connection without regard to what is under way.
    func close() {
        guard machine.closed() else { return }
        if task != nil || givesWay {
            // Who goes on later holds the connection for a while yet: the client shall not wait for that.
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

    /// Does what the machine says, but for looking at the next request: that is the caller's.
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
        machine.handshakeFinished()
        // While the server goes away the time that it gives a new connection goes on.
        if !machine.isDraining { setDeadline(after: listener.configuration.idleDeadline) }
    }

    // MARK: Deadlines

    /// Sets the time by which something must have happened.
    func setDeadline(after duration: Duration) {
        setDeadline(at: listener.loop.now + duration)
    }

    /// Sets the time by which something must have happened.
    func setDeadline(at time: ContinuousClock.Instant) {
        deadline = time
        // Deadlines move with every request; the timer is only moved when it would come too late.
        if let timerTime, timerTime <= time { return }
        timerTime = time
        timer?.schedule(after: time - listener.loop.now)
    }

    /// Sets no time: what is under way may last.
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

    /// Counts the current request among those that are being answered. Returns whether there is a place for it.
    func takePlace(for network: UInt64) -> Bool {
        guard listener.places.take(for: network) else { return false }
        placeHolder = network
        return true
    }

    /// Counts the current request no longer. Harmless when repeated.
    func releasePlace() {
        if let network = placeHolder.take() { listener.places.give(of: network) }
    }

    /// Stops what answers the current request; what it still does has no effect.
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

/// What one connection may do in a turn of its loop before the others have theirs. Pure: told which turn it is.
///
/// Bytes alone are no measure: a few of them can be a request, or a chunk of a body.
struct IterationShare {
    /// Reads of the socket, of 64 KiB, or of a TLS record, at most.
    static let reads = 8
    /// Requests, and pieces of bodies.
    static let steps = 16
    static let writtenBytes = 512 * 1_024

    private var turn: ContinuousClock.Instant?
    private(set) var readsLeft = reads
    private(set) var stepsLeft = steps
    private(set) var writtenBytesLeft = writtenBytes

    /// Has everything begin anew, unless it is still the same turn.
    mutating func begin(_ turn: ContinuousClock.Instant) {
        if turn != self.turn { self = IterationShare(turn: turn) }
    }

    init(turn: ContinuousClock.Instant? = nil) { self.turn = turn }

    mutating func noteRead() { readsLeft -= 1 }

    mutating func noteStep() { stepsLeft -= 1 }

    mutating func noteWritten(_ count: Int) { writtenBytesLeft -= count }
}

/// What a socket did not take yet, in order. Each piece is held as it is, not copied.
struct PendingOutput {
    private struct Segment {
        var bytes = ZeroizingBuffer()
        /// The bytes that were taken.
        var offset = 0
    }

    private var first = Segment()
    private var others: [Segment] = []

    var isEmpty: Bool { first.offset == first.bytes.count }

    /// Adds what follows the first `start` bytes.
    mutating func append(_ bytes: ZeroizingBuffer, from start: Int = 0) {
        guard start < bytes.count else { return }
        if isEmpty {
            first = Segment(bytes: bytes, offset: start)
        } else {
            others.append(Segment(bytes: bytes, offset: start))
        }
    }

    /// The piece that is next, and where in it.
    var front: (bytes: ZeroizingBuffer, offset: Int) { (first.bytes, first.offset) }

    /// Forgets so many bytes of the front's piece.
    mutating func removeFirst(_ count: Int) {
        first.offset += count
        if isEmpty { first = others.isEmpty ? Segment() : others.removeFirst() }
    }
}
