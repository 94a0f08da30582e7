internal import EventLoop
internal import HTTPCore

extension HTTPConnection {
    /// The bytes of pipelined requests that are read ahead. Above it, the socket waits. It exceeds the limit of a
    /// header block, so a head always fits.
    private static let readAheadLimit = 32 * 1_024
    private static let lingerLimit = 256 * 1_024

    func readAndProcess() {
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
