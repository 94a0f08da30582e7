internal import EventLoop
internal import HTTPCore

/// A reply that is being produced.
struct OutgoingStream {
    let isOpenEnded: Bool
    /// Whether the body's end has to be said and the client speaks HTTP/1.1; to others it ends with the connection.
    let isChunked: Bool
    /// Whose the unread part of it is.
    let network: UInt64
    /// How long an ending stream's producer may take from one write to the next.
    let pieceDeadline: Duration
    /// Who waits for the socket to take what was written.
    var waiting: [UnsafeContinuation<Void, Never>] = []

    mutating func wakeAll() {
        for continuation in waiting { continuation.resume() }
        waiting.removeAll()
    }
}

/// The writer of one stream of one connection.
struct StreamWriter: ResponseBodyWriter {
    let connection: LoopBound<HTTPConnection>
    let requestNumber: Int

    func write(_ bytes: [UInt8]) async throws(ResponseStreamEnded) {
        let connection = connection.value
        guard connection.isStreaming(requestNumber) else { throw ResponseStreamEnded() }
        guard !bytes.isEmpty else { return }
        connection.sendPiece(bytes)
        while connection.isStreaming(requestNumber), connection.hasPendingOutput { await connection.outputTaken() }
        guard connection.isStreaming(requestNumber) else { throw ResponseStreamEnded() }
    }
}

extension HTTPConnection {
    /// From here on a piece is sent from where it is instead of being copied behind its chunk's head.
    private static let pieceWorthNoCopy = 16 * 1_024

    func isStreaming(_ number: Int) -> Bool { number == machine.number && machine.isStreaming }

    /// Goes on with a stream after its head was sent.
    func beginStream(_ stream: OutgoingStream) {
        guard machine.isStreaming else { return }
        self.stream = stream
        // A stream without an end must not keep others from being answered.
        if stream.isOpenEnded { releasePlace() }
        // Ends at once when the server is already going away.
        if machine.isDraining, stream.isOpenEnded { return endStream(isComplete: true) }
        hasPendingOutput ? awaitOutput() : waitForPiece()
    }

    /// The producer has returned, or failed.
    func streamFinished(_ number: Int, succeeded: Bool) {
        guard isStreaming(number) else { return }
        endStream(isComplete: succeeded)
    }

    /// Ends the body, as it should be when it is complete, and stops the producer if it still runs.
    func endStream(isComplete: Bool) {
        guard machine.isStreaming else { return }
        let isChunked = stream?.isChunked ?? true
        let action = machine.streamEnded(isComplete: isComplete)
        dropRequest()
        dropStream()
        guard isComplete else { return perform(action) }
        if isChunked {
            listener.writeBuffer.append(contentsOf: HTTP1ResponseSerializer.lastChunk)
            sendWriteBuffer()
        }
        outputHandedOver()
        processInput()
    }

    /// Lets go of the stream; whoever waits in it is told that it has ended.
    func dropStream() {
        var dropped = stream.take()
        dropped?.wakeAll()
    }

    /// Sends a piece; what the socket does not take waits. A piece that is larger than its client's network may have
    /// unread breaks the stream off.
    fileprivate func sendPiece(_ bytes: [UInt8]) {
        guard let stream, machine.isStreaming else { return }
        guard chargeOutput(bytes.count, to: stream.network) else { return endStream(isComplete: false) }
        if bytes.count < Self.pieceWorthNoCopy {
            if stream.isChunked {
                HTTP1ResponseSerializer.appendChunk(bytes, to: &listener.writeBuffer)
            } else {
                listener.writeBuffer.append(contentsOf: bytes)
            }
            sendWriteBuffer()
        } else {
            if stream.isChunked {
                HTTP1ResponseSerializer.appendChunkHead(byteCount: bytes.count, to: &listener.writeBuffer)
            }
            sendWriteBuffer(followedBy: ZeroizingBuffer(bytes))
            if stream.isChunked, machine.isStreaming {
                listener.writeBuffer.append(contentsOf: HTTP1ResponseSerializer.chunkEnd)
                sendWriteBuffer()
            }
        }
        guard machine.isStreaming else { return }
        guard !hasPendingOutput else { return awaitOutput() }
        outputCharge = nil
        waitForPiece()
    }

    /// Waits until the socket has taken everything, or the stream has ended.
    fileprivate func outputTaken() async {
        await withUnsafeContinuation { continuation in
            guard machine.isStreaming, stream != nil else { return continuation.resume() }
            stream?.waiting.append(continuation)
        }
    }

    /// The socket has taken everything.
    func streamOutputTaken() {
        guard machine.isStreaming else { return }
        stream?.wakeAll()
        waitForPiece()
    }

    private func waitForPiece() {
        guard let stream else { return }
        if stream.isOpenEnded { clearDeadline() } else { setDeadline(after: stream.pieceDeadline) }
    }
}
