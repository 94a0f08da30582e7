internal import EventLoop
internal import HTTPCore

extension HTTPConnection {
    /// Waits for the body of an admitted request.
    func awaitBody(_ request: IncomingRequest) {
        guard machine.admitted(machine.number, isIdentified: request.memoryOwner != nil) else { return }
        incoming = request
        guard request.head.framing != .none else { return }
        beginBodyWindow(at: 0)
        if request.head.expectsContinue, parser.bufferedByteCount == 0 {
            listener.writeBuffer.append(contentsOf: HTTP1ResponseSerializer.continueResponse)
            sendWriteBuffer()
        }
    }

    /// Takes the body's bytes that have come. Returns whether the connection may have something else to look at.
    func readBody() -> Bool {
        // Taken out so that the body is appended in place.
        guard !isBodyWaiting, var request = incoming.take() else { return false }
        while let event = share.stepsLeft > 0 ? nextEvent() : nil {
            switch event {
            case .head: preconditionFailure("the parser ends a body before it begins a head")
            case .end:
                run(request)
                return true
            case .body(let bytes):
                share.noteStep()
                guard bytes.withUnsafeBytes({ append($0, to: &request) }) else { return false }
            }
        }
        guard machine.isReadingBody else { return false }
        incoming = request
        share.stepsLeft > 0 ? resumeReading() : giveWay()
        return false
    }

    /// Takes what was read as far as it belongs to the body that is arriving. Returns how many bytes that are.
    func takeBody(of bytes: UnsafeRawBufferPointer) -> Int {
        guard machine.isReadingBody, !isBodyWaiting, var request = incoming.take() else { return 0 }
        let count: Int
        do throws(HTTP1Error) {
            count = try parser.takeBody(of: bytes)
        } catch {
            refuse(error.refusal)
            return bytes.count
        }
        if count > 0 {
            guard append(UnsafeRawBufferPointer(rebasing: bytes[..<count]), to: &request) else {
                return isBodyWaiting ? count : bytes.count
            }
        }
        incoming = request
        return count
    }

    /// Whether a body waits for memory that is lent to another one.
    var isBodyWaiting: Bool { incoming?.heldBack != nil }

    /// Adds bytes to a body, unless its sender holds as much as it may, or has to wait. Returns whether the request goes
    /// on now.
    private func append(_ bytes: UnsafeRawBufferPointer, to request: inout IncomingRequest) -> Bool {
        let needed = request.body.capacity(
            adding: bytes.count, atMost: request.longest, isIdentified: request.memoryOwner != nil)
        let connection = LoopBound(self, loop: listener.loop)
        let wake: @Sendable () -> Void = { connection.loop.schedule { connection.value.memoryIsAskedFor() } }
        switch request.reserve(needed, in: listener.configuration.budgets, at: listener.loop.now, wake: wake) {
        case .granted:
            if request.lentSince == nil, request.charge?.isLent == true {
                request.lentSince = listener.loop.now
                beginBodyWindow(at: request.body.bytes.count)
            }
            request.body.append(bytes, capacity: needed)
            return true
        case .waiting:
            request.heldBack = ZeroizingBuffer(copying: bytes)
            incoming = request
            pauseReading()
            setDeadline(after: listener.configuration.loanWaitLimit)
            return false
        case .refused:
            request.heldBack = ZeroizingBuffer(copying: bytes)
            incoming = request
            identifyLate()
            return false
        }
    }

    /// Has a body that has come in part counted for its sender, or refuses it when nobody can tell who that is.
    private func identifyLate() {
        guard let identify = incoming?.plan.identify, incoming?.memoryOwner == nil, machine.needsIdentification() else {
            return refuse(listener.overload)
        }
        pauseReading()
        self.identify(identify)
    }

    /// Goes on with a body whose sender has become known.
    func continueBody() {
        guard var request = incoming.take() else { return }
        // What has come of it is counted anew, for its sender.
        request.charge = nil
        let heldBack = request.heldBack.take() ?? ZeroizingBuffer()
        guard heldBack.withUnsafeBytes({ append($0, to: &request) }) else { return }
        incoming = request
        beginBodyWindow(at: request.body.bytes.count)
    }

    /// There may be memory for a body that waits; or somebody waits for what this one has.
    private func memoryIsAskedFor() {
        guard machine.isReadingBody else { return }
        if incoming?.charge?.isRecalled ?? false {
            incoming?.heldBack = ZeroizingBuffer()
            return identifyLate()
        }
        guard isBodyWaiting else { return comeToBodyEnd() }
        guard var request = incoming.take(), let heldBack = request.heldBack.take() else { return }
        let patience = deadline
        guard heldBack.withUnsafeBytes({ append($0, to: &request) }) else {
            // To be asked again is no reason to wait for longer.
            if isBodyWaiting, let patience { setDeadline(at: patience) }
            return
        }
        incoming = request
        processInput()
        resumeReading()
    }

    /// Sees to it that a body which has what others wait for is looked at when its time is over.
    private func comeToBodyEnd() {
        guard machine.isReadingBody, let end = bodyEnd else { return }
        beginBodyWindow(at: incoming?.body.bytes.count ?? 0)
        if let deadline, end < deadline { setDeadline(at: end) }
    }

    /// When a body has to give back what was lent to it, if others wait for that.
    private var bodyEnd: ContinuousClock.Instant? {
        guard let since = incoming?.lentSince, let charge = incoming?.charge, charge.isWanted else { return nil }
        return charge.isSlow ? since : since + listener.configuration.loanTime
    }

    private func beginBodyWindow(at count: Int) {
        bodyMeter = ProgressMeter(forgivesFirst: true)
        bodyMeter.begin(at: count)
        setDeadline(after: listener.configuration.bodyWindow)
    }

    /// Whether a body has moved enough since the last time it was asked for; then it may go on.
    func isBodyMoving() -> Bool {
        let configuration = listener.configuration
        guard machine.isReadingBody, !isBodyWaiting,
            bodyMeter.windowPassed(at: incoming?.body.bytes.count ?? 0, requiring: configuration.bodyProgress)
        else { return false }
        setDeadline(after: configuration.bodyWindow)
        return true
    }

    /// Whether the time of a body is over because of others' bodies: it has waited in vain, or others wait for what it
    /// has had for long enough.
    func isBodyOutOfTurn() -> Bool {
        guard machine.isReadingBody else { return false }
        if isBodyWaiting { return true }
        guard let end = bodyEnd, end <= listener.loop.now else { return false }
        incoming?.charge?.noteRecall()
        return true
    }
}
