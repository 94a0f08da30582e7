internal import EventLoop
internal import HTTPCore

/// A reply in production.
struct OutgoingStream {
    let isOpenEnded: Bool
    /// True for a stream of unknown length to an HTTP/1.1 client. Otherwise the announced length or the end of the
    /// connection marks its end.
    let isChunked: Bool
    /// The network that unread output is charged to.
    let network: UInt64
    /// The time limit of the producer from one write to the next, for a stream that ends.
    let pieceDeadline: Duration
    /// The producers that wait until the socket has taken the written bytes.
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
    /// The size from which a piece is sent in place instead of being copied after its chunk's head.
    private static let pieceWorthNoCopy = 16 * 1_024

    func isStreaming(_ number: Int) -> Bool { number == machine.number && machine.isStreaming }

    /// Continues with a stream after its head was sent.
    func beginStream(_ stream: OutgoingStream) {
        guard machine.isStreaming else { return }
        self.stream = stream
        // A stream without an end must not block other requests.
        if stream.isOpenEnded { releasePlace() }
        // Ends at once when the server is already stopping.
        if machine.isDraining, stream.isOpenEnded { return endStream(isComplete: true) }
        hasPendingOutput ? awaitOutput() : waitForPiece()
    }

    /// Handles the end or the failure of the producer.
    func streamFinished(_ number: Int, succeeded: Bool) {
        guard isStreaming(number) else { return }
        endStream(isComplete: succeeded)
    }

    /// Ends the body, properly if it is complete, and stops the producer if it still runs.
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

    /// Releases the stream. Waiting producers receive its end.
    func dropStream() {
        var dropped = stream.take()
        dropped?.wakeAll()
    }

    /// Sends a piece, and keeps the rest that the socket does not take. A piece above the limit of the client's network
    /// ends the stream.
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

    /// Waits until the socket has taken all output, or the stream has ended.
    fileprivate func outputTaken() async {
        await withUnsafeContinuation { continuation in
            guard machine.isStreaming, stream != nil else { return continuation.resume() }
            stream?.waiting.append(continuation)
        }
    }

    /// Wakes the producer after the socket has taken all output.
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
