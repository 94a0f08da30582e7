/// A body that arrives in pieces. One task reads it. The server waits when it sends faster than it is read.
public final class ReplyBody: AsyncSequence, Sendable {
    /// A piece of the body, as it arrived.
    public typealias Element = [UInt8]

    private struct State {
        var pieces: [[UInt8]] = []
        var byteCount = 0
        var end: Result<Void, TransportError>?
        var reader: CheckedContinuation<Void, Never>?
        var isPaused = false
    }

    private let state = Locked(State())
    /// Called when a paused sender may continue, and when reading has ended.
    private let onRoom: @Sendable () -> Void
    private let onAbandoned: @Sendable () -> Void

    /// The maximum number of unread bytes before the sender is paused.
    static let capacity = 256 << 10

    init(onRoom: @escaping @Sendable () -> Void, onAbandoned: @escaping @Sendable () -> Void) {
        self.onRoom = onRoom
        self.onAbandoned = onAbandoned
    }

    deinit { onAbandoned() }

    // MARK: The sending side

    /// Receives a piece.
    /// - Returns: False when there is no room: offer the same piece again after `onRoom`.
    func offer(_ piece: UnsafeRawBufferPointer) -> Bool {
        let (isTaken, reader) = state.withLock { state in
            if state.byteCount >= Self.capacity {
                state.isPaused = true
                return (false, nil as CheckedContinuation<Void, Never>?)
            }
            state.pieces.append([UInt8](piece))
            state.byteCount += piece.count
            return (true, state.reader.take())
        }
        reader?.resume()
        return isTaken
    }

    /// Ends the body.
    func finish(_ end: Result<Void, TransportError>) {
        let reader = state.withLock { state in
            if state.end == nil { state.end = end }
            return state.reader.take()
        }
        reader?.resume()
    }

    // MARK: The reading side

    private func next() async throws(TransportError) -> [UInt8]? {
        while true {
            // First, because a cancelled reader would never end while the sender always has more.
            if Task.isCancelled {
                onAbandoned()
                throw .cancelled
            }
            let (piece, end, resumes) = state.withLock { state in
                if state.pieces.isEmpty { return (nil as [UInt8]?, state.end, false) }
                let piece = state.pieces.removeFirst()
                state.byteCount -= piece.count
                let resumes = state.isPaused && state.byteCount < Self.capacity / 2
                if resumes { state.isPaused = false }
                return (piece, nil, resumes)
            }
            if resumes { onRoom() }
            if let piece { return piece }
            if let end {
                try end.get()
                return nil
            }
            await withTaskCancellationHandler {
                await withCheckedContinuation { reader in
                    let isReady = state.withLock { state in
                        if !state.pieces.isEmpty || state.end != nil || Task.isCancelled { return true }
                        state.reader = reader
                        return false
                    }
                    if isReady { reader.resume() }
                }
            } onCancel: {
                state.withLock { $0.reader.take() }?.resume()
            }
        }
    }

    /// Iterates over the pieces in order, in one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let body: ReplyBody

        public mutating func next() async throws(TransportError) -> [UInt8]? {
            try await body.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: self) }
}
