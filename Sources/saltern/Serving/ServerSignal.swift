import Foundation
import Synchronization

/// The signals that a server obeys.
enum ServerSignal: Sendable {
    /// SIGTERM or SIGINT: finish what is under way and end.
    case stop
    /// SIGHUP: read certificate, key and master key again.
    case reload
}

/// What a signal means, by what the server is at.
struct SignalStateMachine {
    enum Action: Equatable {
        case none
        /// Tell the server.
        case tell(ServerSignal)
        /// End the process: nothing has been promised to anybody yet.
        case exit
        /// End the process as the signal does where nobody handles it: somebody has lost patience.
        case die
    }

    private enum Phase {
        case starting, serving, stopping
    }

    private var phase = Phase.starting

    /// The server answers requests from now on.
    mutating func started() {
        if phase == .starting { phase = .serving }
    }

    /// Another server serves in this one's place. That may be before this one has said that it has started.
    mutating func takenOver() -> Action {
        guard phase != .stopping else { return .none }
        phase = .stopping
        return .tell(.stop)
    }

    mutating func received(_ signal: ServerSignal) -> Action {
        switch (phase, signal) {
        case (.starting, .stop): return .exit
        // What is read at the start may be older than the signal.
        case (.starting, .reload), (.serving, .reload): return .tell(.reload)
        case (.serving, .stop):
            phase = .stopping
            return .tell(.stop)
        case (.stopping, .stop): return .die
        case (.stopping, .reload): return .none
        }
    }
}

/// The signals that arrive from the first line of `main` on.
///
/// They are blocked in every thread and fetched by one of their own, so they count whatever the rest of the process is
/// doing: while it starts, and when it does not come to an end.
final class ServerSignals: Sendable {
    /// The signals in order that the server obeys by itself.
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

    /// Keeps the signals for whoever makes ``ServerSignals``. To be called before there is a second thread.
    static func block() {
        var set = set
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Begins to fetch them.
    /// - Parameter end: Called before a signal ends the process; must not take long.
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

    /// Stops the server as a signal would: another one serves in its place.
    func stop() {
        if case .tell(let signal) = machine.withLock({ $0.takenOver() }) { continuation.yield(signal) }
    }

    /// The server answers requests: a signal to stop lets them finish.
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
