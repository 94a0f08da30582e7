internal import EventLoop
internal import HTTPCore

extension HTTPConnection {
    /// Bytes of pipelined requests that are read ahead of their turn; beyond it the socket has to wait. More than a
    /// header block may have, so that a head is never waited for in vain.
    private static let readAheadLimit = 32 * 1_024
    private static let lingerLimit = 256 * 1_024

    func readAndProcess() {
        guard !givesWay else { return pauseReading() }
        share.begin(listener.loop.now)
        while share.readsLeft > 0, share.stepsLeft > 0 {
            guard parser.bufferedByteCount < Self.readAheadLimit else {
                // The requests have to wait for the reply before them, or for a client that does not read replies.
                return pauseReading()
            }
            share.noteRead()
            switch transport.read(into: listener.readBuffer) {
            case .done(let count):
                let bytes = UnsafeMutableRawBufferPointer(rebasing: listener.readBuffer[..<count])
                take(UnsafeRawBufferPointer(bytes))
                // Another connection reads here next; what this one sent can be a key.
                bytes.wipe()
            case .wantsRead, .wantsWrite: return processInput()
            // A client that has gone does not want its reply: what has not reached the database is not started.
            case .closed: return close()
            }
            processInput()
            guard machine.readsInput, !isReadingPaused, transport.hasPendingBytes else { return }
        }
        // Bytes that wait inside TLS do not make the socket readable.
        continueNextIteration()
    }

    /// Takes what was read: bytes of a body straight into it, everything else by way of the parser.
    private func take(_ bytes: UnsafeRawBufferPointer) {
        let count = takeBody(of: bytes)
        guard count < bytes.count else { return }
        parser.append(UnsafeRawBufferPointer(rebasing: bytes[count...]))
    }

    /// Takes from the parser whatever can be taken now.
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

    /// The parser's next event; nil when there is none, or when there will never be one and the client was told why.
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

    /// Lets the client wait with what it still sends.
    func pauseReading() {
        isReadingPaused = true
        watch?.setReading(false)
    }

    /// Lets the socket be read again after a pause, unless as much as may be is still waiting.
    func resumeReading() {
        guard isReadingPaused, machine.readsInput, !isBodyWaiting, !givesWay,
            parser.bufferedByteCount < Self.readAheadLimit
        else { return }
        isReadingPaused = false
        watch?.setReading(true)
        // Bytes that wait inside TLS do not make the socket readable.
        if transport.hasPendingBytes { continueNextIteration() }
    }

    /// Goes on with what was read after the other connections have had their turn.
    private func continueNextIteration() {
        if isIterationRequested { return }
        isIterationRequested = true
        listener.loop.notifyAtIterationEnd(self)
    }

    /// Goes on when everybody else has had their turn, those that gave way before included: it has used up its share.
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

    /// Takes what was read, and reads what has come since.
    func goOn() {
        processInput()
        if machine.readsInput, !isBodyWaiting { readAndProcess() }
    }

    /// Says that nothing more will come, and gives the client time to read it: closing a socket on which something
    /// waits would take back what was sent.
    func linger() {
        transport.finishWriting()
        isReadingPaused = false
        watch?.setReading(true)
        setDeadline(after: listener.configuration.lingerDeadline)
        discardInput()
    }

    /// Throws away what the client still sends.
    func discardInput() {
        if !transport.discardInput(limit: Self.lingerLimit, using: listener.readBuffer) { close() }
    }
}
