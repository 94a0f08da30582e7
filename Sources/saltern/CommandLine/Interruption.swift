import Dispatch
import Foundation
import Synchronization

/// Ctrl-C while this lives: a wish that a command fulfils where it can stop cleanly. The process no longer ends by it of
/// itself.
final class Interruption: Sendable {
    private let wish = Wish()
    private let sources: [any DispatchSourceSignal]

    /// Whether a signal has come.
    var isRequested: Bool { wish.isRequested.load(ordering: .relaxed) }

    init() {
        let queue = DispatchQueue(label: "interruption")
        sources = [SIGINT, SIGTERM].map { [wish] number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { wish.isRequested.store(true, ordering: .relaxed) }
            source.resume()
            return source
        }
    }

    deinit {
        for source in sources { source.cancel() }
        signal(SIGINT, SIG_DFL)
        signal(SIGTERM, SIG_DFL)
    }

    private final class Wish: Sendable {
        let isRequested = Atomic(false)
    }
}
