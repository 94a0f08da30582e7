import Dispatch
import Foundation
import Synchronization

/// Handles Ctrl-C and other signals while it lives. The process does not end: a command ends at a point where it can
/// stop cleanly.
package final class Interruption: Sendable {
    /// The request that a signal makes.
    package let wish = Wish()
    private let registration: UInt64

    /// A user's request to end a command.
    package final class Wish: Sendable {
        private let count = Atomic(0)
        private let first = Atomic(Int32(0))
        private let isTypingIgnored = Atomic(false)

        package var isThere: Bool { count.load(ordering: .relaxed) > 0 }

        /// Returns the failure of a command that ended as requested. Its exit status is that of a shell for the signal.
        package func fulfilled(_ message: String) -> CommandFailure {
            CommandFailure(message, status: 128 + first.load(ordering: .relaxed), code: "interrupted")
        }

        /// Runs `body`, and ignores Ctrl-C meanwhile, which is for another program then.
        package func ignoringKeyboard<Result>(_ body: () async throws -> Result) async rethrows -> Result {
            isTypingIgnored.store(true, ordering: .relaxed)
            defer { isTypingIgnored.store(false, ordering: .relaxed) }
            return try await body()
        }

        /// - Returns: The number of requests so far, including this one. Nil while Ctrl-C is ignored.
        fileprivate func express(by signal: Int32) -> Int? {
            if signal == SIGINT, isTypingIgnored.load(ordering: .relaxed) { return nil }
            _ = first.compareExchange(expected: 0, desired: signal, ordering: .relaxed)
            return count.add(1, ordering: .relaxed).newValue
        }
    }

    /// - Parameter onSignal: Receives the number of signals so far.
    package init(
        _ signals: [Int32] = Interruption.signalsThatEnd, onSignal: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        registration = SignalReception.shared.add(signals) { [wish] signal in
            if let count = wish.express(by: signal) { onSignal(count) }
        }
    }

    deinit { SignalReception.shared.remove(registration) }

    /// SIGHUP is absent if `nohup` started the program, which then survives the terminal.
    package static var signalsThatEnd: [Int32] {
        var action = sigaction()
        sigaction(SIGHUP, nil, &action)
        // The handler is the first member, and SIG_IGN is 1.
        let isIgnored = withUnsafeBytes(of: action) { $0.load(as: Int.self) } == 1
        return isIgnored ? [SIGINT, SIGTERM] : [SIGINT, SIGTERM, SIGHUP]
    }
}

/// The process's only receiver of signals.
///
/// A signal's handler belongs to the process. If another source of Dispatch replaces it, the first one receives
/// nothing.
private final class SignalReception: Sendable {
    static let shared = SignalReception()

    private struct Listener {
        let id: UInt64
        let signals: [Int32]
        let body: @Sendable (Int32) -> Void
    }

    private struct State: ~Copyable {
        var sources: [Int32: any DispatchSourceSignal] = [:]
        var listeners: [Listener] = []
        var lastID: UInt64 = 0
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "interruption")

    func add(_ signals: [Int32], _ body: @escaping @Sendable (Int32) -> Void) -> UInt64 {
        let isListening = DispatchSemaphore(value: 0)
        let (id, started) = state.withLock { state in
            state.lastID += 1
            state.listeners.append(Listener(id: state.lastID, signals: signals, body: body))
            let missing = signals.filter { state.sources[$0] == nil }
            for number in missing {
                let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
                source.setEventHandler { [unowned self] in receive(number) }
                source.setRegistrationHandler { isListening.signal() }
                source.resume()
                state.sources[number] = source
            }
            return (state.lastID, missing.count)
        }
        // Dispatch starts asynchronously. A signal before that would end the process.
        for _ in 0..<started { isListening.wait() }
        return id
    }

    func remove(_ id: UInt64) {
        state.withLock { state in state.listeners.removeAll { $0.id == id } }
    }

    private func receive(_ number: Int32) {
        let listeners = state.withLock { state in state.listeners.filter { $0.signals.contains(number) } }
        for listener in listeners { listener.body(number) }
        guard listeners.isEmpty else { return }
        // No command has work to finish.
        signal(number, SIG_DFL)
        kill(getpid(), number)
    }
}
