import Dispatch
import Foundation
import Synchronization

/// Ctrl-C while this lives: a wish that a command fulfils where it can stop cleanly. The process no longer ends by it of
/// itself.
package final class Interruption {
    /// Whether a signal has come.
    package let wish = Wish()
    private let signals: [Int32]
    private let sources: [any DispatchSourceSignal]

    /// Somebody's wish that a command ends.
    package final class Wish: Sendable {
        private let count = Atomic(0)
        private let isTypingIgnored = Atomic(false)

        package var isThere: Bool { count.load(ordering: .relaxed) > 0 }

        /// Does something during which Ctrl-C is meant for another program.
        package func ignoringKeyboard<Result>(_ body: () async throws -> Result) async rethrows -> Result {
            isTypingIgnored.store(true, ordering: .relaxed)
            defer { isTypingIgnored.store(false, ordering: .relaxed) }
            return try await body()
        }

        /// - Returns: How often it was expressed, this time included; nil when it does not count.
        fileprivate func express(by signal: Int32) -> Int? {
            if signal == SIGINT, isTypingIgnored.load(ordering: .relaxed) { return nil }
            return count.add(1, ordering: .relaxed).newValue
        }
    }

    /// - Parameter onSignal: Called with the number of the signals that have come so far.
    package init(_ signals: [Int32] = [SIGINT, SIGTERM], onSignal: @escaping @Sendable (Int) -> Void = { _ in }) {
        self.signals = signals
        let queue = DispatchQueue(label: "interruption")
        sources = signals.map { [wish] number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { if let count = wish.express(by: number) { onSignal(count) } }
            source.resume()
            return source
        }
    }

    deinit {
        for source in sources { source.cancel() }
        for number in signals { signal(number, SIG_DFL) }
    }
}
