internal import EventLoop
internal import HTTPCore

/// A reply that is being produced.
struct OutgoingStream {
    let isOpenEnded: Bool
    /// Whether the client speaks HTTP/1.1; to others the body ends with the connection.
    let isChunked: Bool
    let closesAfterwards: Bool
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

    func isStreaming(_ number: Int) -> Bool {
        guard number == requestNumber, case .streaming = phase else { return false }
        return true
    }

    /// Goes on with a stream after its head was sent.
    func beginStream(_ stream: OutgoingStream) {
        phase = .streaming(stream)
        // A stream without an end must not keep others from being answered.
        if stream.isOpenEnded { releaseRequestSlot() }
        // Ends at once when the server is already going away.
        if listener.isDraining, stream.isOpenEnded { return endStream() }
        hasPendingOutput ? setDeadline(after: listener.configuration.writeDeadline) : waitForPiece()
    }

    /// The producer has returned, or failed.
    func streamFinished(_ number: Int, succeeded: Bool) {
        guard isStreaming(number) else { return }
        // Without the last chunk the client knows that something is missing.
        succeeded ? endStream() : close()
    }

    /// Ends the body as it should be, and stops the producer if it still runs.
    func endStream() {
        guard case .streaming(let stream) = phase else { return }
        cancelTask()
        if stream.isChunked {
            listener.writeBuffer += HTTP1ResponseSerializer.lastChunk
            sendWriteBuffer()
        }
        if stream.closesAfterwards || listener.isDraining { return finish(lingers: false) }
        replyFinished()
        processInput()
    }

    /// Sends a piece; what the socket does not take waits.
    fileprivate func sendPiece(_ bytes: [UInt8]) {
        guard case .streaming(let stream) = phase else { return }
        if bytes.count < Self.pieceWorthNoCopy {
            if stream.isChunked {
                HTTP1ResponseSerializer.appendChunk(bytes, to: &listener.writeBuffer)
            } else {
                listener.writeBuffer += bytes
            }
            sendWriteBuffer()
        } else {
            if stream.isChunked {
                HTTP1ResponseSerializer.appendChunkHead(byteCount: bytes.count, to: &listener.writeBuffer)
            }
            sendWriteBuffer(followedBy: bytes)
            if stream.isChunked {
                listener.writeBuffer += HTTP1ResponseSerializer.chunkEnd
                sendWriteBuffer()
            }
        }
        guard case .streaming = phase else { return }
        hasPendingOutput ? setDeadline(after: listener.configuration.writeDeadline) : waitForPiece()
    }

    /// Waits until the socket has taken everything, or the stream has ended.
    fileprivate func outputTaken() async {
        await withUnsafeContinuation { continuation in
            guard case .streaming(var stream) = phase else { return continuation.resume() }
            stream.waiting.append(continuation)
            phase = .streaming(stream)
        }
    }

    /// The socket has taken everything.
    func streamOutputTaken() {
        guard case .streaming(var stream) = phase else { return }
        stream.wakeAll()
        phase = .streaming(stream)
        waitForPiece()
    }

    private func waitForPiece() {
        guard case .streaming(let stream) = phase else { return }
        if stream.isOpenEnded { clearDeadline() } else { setDeadline(after: stream.pieceDeadline) }
    }
}
