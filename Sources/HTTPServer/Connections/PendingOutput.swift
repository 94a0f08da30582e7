internal import EventLoop
internal import HTTPCore

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

extension HTTPConnection {
    /// The size from which a body is sent in place instead of being copied after its head.
    private static let bodyWorthNoCopy = 64 * 1_024
    /// The maximum content of one TLS record.
    private static let recordLimit = 16 * 1_024
    /// Unread output of one connection up to this size is not charged. Connections have a limit of their own.
    static let freeOutputBytes = 64 * 1_024

    /// Writes a response, or the head of a stream.
    func send(_ response: Response, _ serializer: HTTP1ResponseSerializer) {
        if let body = serializer.body(of: response), body.count >= Self.bodyWorthNoCopy {
            serializer.appendHead(of: response, date: listener.date, to: &listener.writeBuffer)
            sendWriteBuffer(followedBy: body)
        } else {
            serializer.append(response, date: listener.date, to: &listener.writeBuffer)
            sendWriteBuffer()
        }
    }

    /// Handles the state after a whole reply was handed over.
    func outputHandedOver() {
        hasPendingOutput ? awaitOutput() : allTaken()
    }

    var hasPendingOutput: Bool { !output.isEmpty }

    // MARK: Memory

    /// Charges bytes as unread output. Returns whether the network has room for them.
    func chargeOutput(_ count: Int, to network: UInt64) -> Bool {
        guard count > Self.freeOutputBytes else { return true }
        let charge = outputCharge ?? listener.configuration.budgets.output.open(for: .address(network))
        guard charge.resize(to: count) else { return false }
        outputCharge = charge
        return true
    }

    // MARK: Writing

    /// Sends the bytes of `listener.writeBuffer`, keeps the rest that the socket does not take, and empties the buffer.
    func sendWriteBuffer() {
        let sent = output.isEmpty ? listener.writeBuffer.withUnsafeBytes { write($0) } : 0
        if sent < listener.writeBuffer.count { output.append(ZeroizingBuffer(listener.writeBuffer[sent...])) }
        listener.writeBuffer.removeAll(keepingCapacity: listener.writeBuffer.capacity <= 256 * 1_024)
    }

    /// Sends `listener.writeBuffer` and then `bytes`, which stay in place.
    func sendWriteBuffer(followedBy bytes: ZeroizingBuffer) {
        // Fills the first record, so that it is not short.
        let prefix = min(bytes.count, max(Self.recordLimit - listener.writeBuffer.count, 0))
        bytes.withUnsafeBytes { listener.writeBuffer.append(UnsafeRawBufferPointer(rebasing: $0[..<prefix])) }
        sendWriteBuffer()
        if machine.state == .closed { return }
        guard output.isEmpty, prefix < bytes.count else { return output.append(bytes, from: prefix) }
        let sent = bytes.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[prefix...])) }
        output.append(bytes, from: prefix + sent)
    }

    /// Sends pending output, as far as the socket takes it.
    func flush() {
        guard hasPendingOutput else { return }
        while hasPendingOutput {
            let (bytes, offset) = output.front
            let sent = bytes.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            if machine.state == .closed { return }
            output.removeFirst(sent)
            if offset + sent < bytes.count { return }
        }
        watch?.setWriting(false)
        allTaken()
    }

    private func allTaken() {
        outputCharge = nil
        perform(machine.outputTaken())
        streamOutputTaken()
    }

    /// Writes until all bytes are taken, the socket is full or the share of the iteration is used up. Returns the
    /// number of bytes taken.
    private func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        share.begin(listener.loop.now)
        var sent = 0
        defer {
            writtenCount += sent
            share.noteWritten(sent)
        }
        while sent < bytes.count {
            guard sent < share.writtenBytesLeft else {
                watch?.setWriting(true)
                return sent
            }
            switch transport.write(UnsafeRawBufferPointer(rebasing: bytes[sent...])) {
            case .done(let count): sent += count
            case .wantsRead: return sent
            case .wantsWrite:
                watch?.setWriting(true)
                return sent
            case .closed:
                close()
                return bytes.count
            }
        }
        return sent
    }

    // MARK: Progress

    /// Waits for the client to take pending output. A started window continues, so many small replies cannot evade it.
    func awaitOutput() {
        let now = listener.loop.now
        if let end = outputWindowEnd, end > now { return setDeadline(after: end - now) }
        outputMeter.begin(at: takenCount)
        beginOutputWindow()
    }

    /// Returns whether the client has taken enough since the last check, and may continue.
    func isOutputMoving() -> Bool {
        let isAwaited = machine.writesOutput && hasPendingOutput
        guard isAwaited || machine.state == .lingering && transport.untakenCount > 0 else { return false }
        guard let end = outputWindowEnd, end <= listener.loop.now else {
            // Another time limit expired: the kernel has the last reply, but the client does not yet.
            awaitOutput()
            return true
        }
        guard outputMeter.windowPassed(at: takenCount, requiring: listener.configuration.writeProgress) else {
            return false
        }
        beginOutputWindow()
        return true
    }

    private func beginOutputWindow() {
        outputWindowEnd = listener.loop.now + listener.configuration.writeDeadline
        setDeadline(after: listener.configuration.writeDeadline)
    }

    /// The bytes that the client has acknowledged, without those that the kernel holds.
    private var takenCount: Int { max(writtenCount - transport.untakenCount, 0) }
}
