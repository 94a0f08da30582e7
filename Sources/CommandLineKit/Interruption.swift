import Dispatch
import Foundation
import Synchronization

/// Ctrl-C while this lives: a wish that a command fulfils where it can stop cleanly. The process no longer ends by it of
/// itself.
package final class Interruption: Sendable {
    /// Whether a signal has come.
    package let wish = Wish()
    private let registration: UInt64

    /// Somebody's wish that a command ends.
    package final class Wish: Sendable {
        private let count = Atomic(0)
        private let first = Atomic(Int32(0))
        private let isTypingIgnored = Atomic(false)

        package var isThere: Bool { count.load(ordering: .relaxed) > 0 }

        /// What a command fails with that has fulfilled it: as a shell says it of whoever ends by that signal.
        package func fulfilled(_ message: String) -> CommandFailure {
            CommandFailure(message, status: 128 + first.load(ordering: .relaxed), code: "interrupted")
        }

        /// Does something during which Ctrl-C is meant for another program.
        package func ignoringKeyboard<Result>(_ body: () async throws -> Result) async rethrows -> Result {
            isTypingIgnored.store(true, ordering: .relaxed)
            defer { isTypingIgnored.store(false, ordering: .relaxed) }
            return try await body()
        }

        /// - Returns: How often it was expressed, this time included; nil when it does not count.
        fileprivate func express(by signal: Int32) -> Int? {
            if signal == SIGINT, isTypingIgnored.load(ordering: .relaxed) { return nil }
            _ = first.compareExchange(expected: 0, desired: signal, ordering: .relaxed)
            return count.add(1, ordering: .relaxed).newValue
        }
    }

    /// - Parameter onSignal: Called with the number of the signals that have come so far.
    package init(
        _ signals: [Int32] = Interruption.signalsThatEnd, onSignal: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        registration = SignalReception.shared.add(signals) { [wish] signal in
            if let count = wish.express(by: signal) { onSignal(count) }
        }
    }

    deinit { SignalReception.shared.remove(registration) }

    /// Whoever started this with `nohup` wants it to outlive the terminal.
    package static var signalsThatEnd: [Int32] {
        var action = sigaction()
        sigaction(SIGHUP, nil, &action)
        // The handler is the first member, and SIG_IGN is 1.
        let isIgnored = withUnsafeBytes(of: action) { $0.load(as: Int.self) } == 1
        return isIgnored ? [SIGINT, SIGTERM] : [SIGINT, SIGTERM, SIGHUP]
    }
}

/// One listener for the process: what a signal does is the process's, and Dispatch hears none of a second source when its
/// handler was taken away by whoever was first.
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
        // Dispatch begins later, and what comes before would end the process.
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
        // Nobody has anything to bring to an end.
        signal(number, SIG_DFL)
        kill(getpid(), number)
    }
}
