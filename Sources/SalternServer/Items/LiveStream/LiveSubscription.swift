internal import Synchronization

/// What one stream has to tell its client next. Filled by the node's ``RevisionWatcher`` from its loop, emptied by
/// the stream on its own.
///
/// It holds the latest revision only: a client that reads slowly learns where the account is now, not every step.
final class LiveSubscription: Sendable {
    enum Event: Equatable {
        /// The account's revision.
        case revision(Int64)
        /// Nothing has happened for so long that the client should be told so.
        case keepAlive
    }

    private struct State {
        var revision: Int64
        /// What the client knows.
        var told: Int64?
        var isKeepAliveDue = false
        var hasEnded = false
        var waiting: UnsafeContinuation<Void, Never>?
    }

    let session: SessionKey
    private let state: Mutex<State>

    /// - Parameters:
    ///   - session: Whose stream it is.
    ///   - revision: The account's revision now.
    ///   - told: The revision that the client already knows.
    init(session: SessionKey, revision: Int64, told: Int64?) {
        self.session = session
        state = Mutex(State(revision: revision, told: told))
    }

    /// The next thing to tell; waits for it. Nil when the session or the task has ended.
    func next() async -> Event? {
        await withTaskCancellationHandler {
            while true {
                if let event = take() { return event }
                let hasEnded = await waitForChange()
                if hasEnded { return nil }
            }
        } onCancel: {
            end()
        }
    }

    /// Tells the account's revision. A lower one than is known is an answer from before.
    func move(to revision: Int64) {
        wake { state in
            guard revision > state.revision else { return false }
            state.revision = revision
            return revision != state.told
        }
    }

    /// Lets the client hear that the stream is alive.
    func keepAlive() {
        wake { state in
            state.isKeepAliveDue = true
            return true
        }
    }

    /// Ends the stream.
    func end() {
        wake { state in
            state.hasEnded = true
            return true
        }
    }

    private func take() -> Event? {
        state.withLock { state in
            if state.hasEnded { return nil }
            if state.revision != state.told {
                state.told = state.revision
                state.isKeepAliveDue = false
                return .revision(state.revision)
            }
            guard state.isKeepAliveDue else { return nil }
            state.isKeepAliveDue = false
            return .keepAlive
        }
    }

    /// Waits until something has happened. Returns whether the stream has ended.
    private func waitForChange() async -> Bool {
        await withUnsafeContinuation { continuation in
            let hasChange = state.withLock { state in
                let hasChange = state.hasEnded || state.isKeepAliveDue || state.revision != state.told
                if !hasChange { state.waiting = continuation }
                return hasChange
            }
            if hasChange { continuation.resume() }
        }
        return state.withLock { $0.hasEnded }
    }

    /// Changes the state, and wakes the stream when `change` says that there is something for it.
    private func wake(_ change: (inout State) -> Bool) {
        let continuation = state.withLock { state in change(&state) ? state.waiting.take() : nil }
        continuation?.resume()
    }
}
