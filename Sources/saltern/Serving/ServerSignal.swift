import Dispatch
import Foundation

/// The signals that a server obeys.
enum ServerSignal: Sendable {
    /// SIGTERM or SIGINT: finish what is under way and end.
    case stop
    /// SIGHUP: read certificate and key again.
    case reload

    /// The signals as they arrive, from now on; the process no longer ends by them of itself.
    static func arriving() -> AsyncStream<ServerSignal> {
        AsyncStream { continuation in
            let queue = DispatchQueue(label: "signals")
            let sources = [(SIGTERM, stop), (SIGINT, stop), (SIGHUP, reload)].map { number, meaning in
                signal(number, SIG_IGN)
                let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
                source.setEventHandler { continuation.yield(meaning) }
                source.resume()
                return source
            }
            continuation.onTermination = { _ in for source in sources { source.cancel() } }
        }
    }
}
