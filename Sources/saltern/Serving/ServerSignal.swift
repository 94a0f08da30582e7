import Foundation
import Synchronization

/// The signals that a server handles.
enum ServerSignal: Sendable {
    /// SIGTERM or SIGINT: finish pending requests and end.
    case stop
    /// SIGHUP: read certificate, key, master key and signing keys again.
    case reload
}

/// The effect of a signal in each phase of the server.
struct SignalStateMachine {
    enum Action: Equatable {
        case none
        case tell(ServerSignal)
        /// End the process: it has not accepted any work yet.
        case exit
        /// End the process by the signal's default action: it was sent a second time.
        case die
    }

    private enum Phase {
        case starting, serving, stopping
    }

    private var phase = Phase.starting

    /// Records that the server serves requests.
    mutating func started() {
        if phase == .starting { phase = .serving }
    }

    /// Stops the server because another one serves instead. This may come before ``started()``.
    mutating func takenOver() -> Action {
        guard phase != .stopping else { return .none }
        phase = .stopping
        return .tell(.stop)
    }

    mutating func received(_ signal: ServerSignal) -> Action {
        switch (phase, signal) {
        case (.starting, .stop): return .exit
        // Files read during the start may be older than the signal.
        case (.starting, .reload), (.serving, .reload): return .tell(.reload)
        case (.serving, .stop):
            phase = .stopping
            return .tell(.stop)
        case (.stopping, .stop): return .die
        case (.stopping, .reload): return .none
        }
    }
}

/// Receives signals from the first line of `main` on.
///
/// They are blocked in every thread and fetched by a separate one. So they work whatever the rest of the process does:
/// during its start, and when it does not end.
final class ServerSignals: Sendable {
    /// The signals for the server, in order.
    let arriving: AsyncStream<ServerSignal>
    private let continuation: AsyncStream<ServerSignal>.Continuation
    private let machine = Mutex(SignalStateMachine())

    private static let meanings: [(number: CInt, meaning: ServerSignal)] = [
        (SIGTERM, .stop), (SIGINT, .stop), (SIGHUP, .reload),
    ]

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for (number, _) in meanings { sigaddset(&set, number) }
        return set
    }

    /// Blocks the signals until ``ServerSignals`` is made. Call it before there is a second thread.
    static func block() {
        var set = set
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Begins to fetch signals.
    /// - Parameter end: Called before a signal ends the process. It must be quick.
    init(end: @escaping @Sendable () -> Void) {
        (arriving, continuation) = AsyncStream.makeStream(of: ServerSignal.self)
        // Retained by the thread, which runs for the life of the process.
        let thread = Thread { [self] in
            var set = Self.set
            while true {
                var number: CInt = 0
                guard sigwait(&set, &number) == 0,
                    let meaning = Self.meanings.first(where: { $0.number == number })?.meaning
                else { continue }
                received(number, meaning, end: end)
            }
        }
        thread.name = "signals"
        thread.start()
    }

    /// Stops the server like a signal, because another one serves instead.
    func stop() {
        if case .tell(let signal) = machine.withLock({ $0.takenOver() }) { continuation.yield(signal) }
    }

    /// Records that the server serves requests, which a signal to stop now lets finish.
    func started() { machine.withLock { $0.started() } }

    private func received(_ number: CInt, _ meaning: ServerSignal, end: () -> Void) {
        switch machine.withLock({ $0.received(meaning) }) {
        case .none: break
        case .tell(let signal): continuation.yield(signal)
        case .exit:
            end()
            _exit(0)
        case .die:
            end()
            signal(number, SIG_DFL)
            var set = Self.set
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
            kill(getpid(), number)
        }
    }
}
