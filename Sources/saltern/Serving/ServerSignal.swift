import Dispatch
import Foundation

/// The signals that a server obeys.
enum ServerSignal: Sendable {
    /// SIGTERM or SIGINT: finish what is under way and end.
    case stop
    /// SIGHUP: read certificate, key and master key again.
    case reload
}

/// The signals that arrive while this lives; the process no longer ends by them of itself.
struct ServerSignals {
    /// The signals in order.
    let arriving: AsyncStream<ServerSignal>
    private let sources: [any DispatchSourceSignal]

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: ServerSignal.self)
        let queue = DispatchQueue(label: "signals")
        arriving = stream
        sources = [(SIGTERM, ServerSignal.stop), (SIGINT, .stop), (SIGHUP, .reload)].map { number, meaning in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { continuation.yield(meaning) }
            source.resume()
            return source
        }
    }
}
