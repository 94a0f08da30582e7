import Dispatch
import Foundation
import Synchronization

/// Ctrl-C while this lives: a wish that a command fulfils where it can stop cleanly. The process no longer ends by it of
/// itself.
final class Interruption {
    /// Whether a signal has come.
    let wish = Wish()
    private let sources: [any DispatchSourceSignal]

    /// Somebody's wish that a command ends.
    final class Wish: Sendable {
        private let state = Atomic(false)

        var isThere: Bool { state.load(ordering: .relaxed) }

        fileprivate func express() { state.store(true, ordering: .relaxed) }
    }

    init() {
        let queue = DispatchQueue(label: "interruption")
        sources = [SIGINT, SIGTERM].map { [wish] number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { wish.express() }
            source.resume()
            return source
        }
    }

    deinit {
        for source in sources { source.cancel() }
        signal(SIGINT, SIG_DFL)
        signal(SIGTERM, SIG_DFL)
    }
}
