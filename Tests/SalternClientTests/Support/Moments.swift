import CSQLite
import Synchronization

@testable import SalternClient

/// What happens to a device between any two of its steps: a person does something, or its process ends. What a process
/// does after its end has no effect.
final class Moments: Sendable {
    /// A step before which it happens, counted from the call of ``Moments/arm(_:_:)`` on.
    struct Moment: Sendable {
        var number: Int
        /// Whether only steps are counted that change something.
        var isOfWriting: Bool
    }

    enum Event: Sendable {
        case end
        case other(@Sendable () -> Void)
    }

    private struct State {
        var hasEnded = false
        var steps = 0
        var writings = 0
        var armed: (moment: Moment, event: Event)?
    }

    private let state = Mutex(State())

    func arm(_ moment: Moment, _ event: Event) {
        state.withLock { $0 = State(armed: (moment, event)) }
    }

    /// From now on nothing happens, and what is done has an effect.
    func disarm() { state.withLock { $0 = State() } }

    /// A step that changes nothing.
    func look() { step(isWriting: false) }

    /// A step that changes something.
    /// - Returns: false when it has no effect any more.
    func write() -> Bool {
        step(isWriting: true)
        return !state.withLock { $0.hasEnded }
    }

    private func step(isWriting: Bool) {
        let event = state.withLock { state -> Event? in
            defer {
                state.steps += 1
                if isWriting { state.writings += 1 }
            }
            guard let (moment, event) = state.armed, isWriting || !moment.isOfWriting,
                (moment.isOfWriting ? state.writings : state.steps) == moment.number
            else { return nil }
            state.armed = nil
            if case .end = event { state.hasEnded = true }
            return event
        }
        if case .other(let body)? = event { body() }
    }
}

/// Requests that come and replies that go are steps, too.
struct MomentsTransport: HTTPTransport {
    let inner: any HTTPTransport
    let moments: Moments

    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        guard moments.write() else { throw .cancelled }
        let reply = try await inner.send(request)
        guard moments.write() else { throw .cancelled }
        return reply
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
        try await inner.stream(request)
    }
}

extension Vault {
    /// Each transaction of the store is a step from now on. `moments` has to be there for as long as the vault.
    func attach(_ moments: Moments) {
        _ = sqlite3_commit_hook(
            store.database.handle,
            { $0.map { Unmanaged<Moments>.fromOpaque($0).takeUnretainedValue().write() } == true ? 0 : 1 },
            Unmanaged.passUnretained(moments).toOpaque())
    }
}
