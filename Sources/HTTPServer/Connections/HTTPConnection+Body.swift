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

    /// Takes the body's received bytes. Returns whether the connection may continue with other input.
    func readBody() -> Bool {
        // Taken out, so that the body is appended in place.
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

    /// Takes received bytes of the current body. Returns their number.
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

    /// True when a body waits for memory of the reserve, which other bodies hold.
    var isBodyWaiting: Bool { incoming?.heldBack != nil }

    /// Appends bytes to a body, unless its sender exceeds its quota or has to wait. Returns whether the request
    /// continues.
    private func append(_ bytes: UnsafeRawBufferPointer, to request: inout IncomingRequest) -> Bool {
        let needed = request.body.capacity(
            adding: bytes.count, atMost: request.longest, isIdentified: request.memoryOwner != nil)
        let connection = LoopBound(self, loop: listener.loop)
        let wake: @Sendable () -> Void = { connection.loop.schedule { connection.value.memoryIsAskedFor() } }
        switch request.reserve(needed, in: listener.configuration.budgets, at: listener.loop.now, wake: wake) {
        case .granted:
            if request.lentSince == nil, request.charge?.exceedsQuota == true {
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

    /// Charges an incomplete body to its sender, or rejects it when the sender cannot be identified.
    private func identifyLate() {
        guard let identify = incoming?.plan.identify, incoming?.memoryOwner == nil, machine.needsIdentification() else {
            return refuse(listener.overload)
        }
        pauseReading()
        self.identify(identify)
    }

    /// Continues with a body after the identification of its sender.
    func continueBody() {
        guard var request = incoming.take() else { return }
        // The received bytes are charged again, to the sender.
        request.charge = nil
        let heldBack = request.heldBack.take() ?? ZeroizingBuffer()
        guard heldBack.withUnsafeBytes({ append($0, to: &request) }) else { return }
        incoming = request
        beginBodyWindow(at: request.body.bytes.count)
    }

    /// Handles a wake-up of the budget: there may be memory for a waiting body, or others wait for this body's memory.
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
            // A wake-up does not extend the time limit.
            if isBodyWaiting, let patience { setDeadline(at: patience) }
            return
        }
        incoming = request
        processInput()
        resumeReading()
    }

    /// Ensures a check at the end of a body's time if others wait for its memory.
    private func comeToBodyEnd() {
        guard machine.isReadingBody, let end = bodyEnd else { return }
        beginBodyWindow(at: incoming?.body.bytes.count ?? 0)
        if let deadline, end < deadline { setDeadline(at: end) }
    }

    /// The time at which a body must return borrowed memory, if others wait for it.
    private var bodyEnd: ContinuousClock.Instant? {
        guard let since = incoming?.lentSince, let charge = incoming?.charge, charge.isWanted else { return nil }
        return charge.isSlow ? since : since + listener.configuration.loanTime
    }

    private func beginBodyWindow(at count: Int) {
        bodyMeter = ProgressMeter(forgivesFirst: true)
        bodyMeter.begin(at: count)
        setDeadline(after: listener.configuration.bodyWindow)
    }

    /// Returns whether a body has made enough progress since the last check, and may continue.
    func isBodyMoving() -> Bool {
        let configuration = listener.configuration
        guard machine.isReadingBody, !isBodyWaiting,
            bodyMeter.windowPassed(at: incoming?.body.bytes.count ?? 0, requiring: configuration.bodyProgress)
        else { return false }
        setDeadline(after: configuration.bodyWindow)
        return true
    }

    /// Returns whether a body's time has ended because of other bodies: it waited without success, or held memory for
    /// too long while others waited.
    func isBodyOutOfTurn() -> Bool {
        guard machine.isReadingBody else { return false }
        if isBodyWaiting { return true }
        guard let end = bodyEnd, end <= listener.loop.now else { return false }
        incoming?.charge?.noteRecall()
        return true
    }
}
