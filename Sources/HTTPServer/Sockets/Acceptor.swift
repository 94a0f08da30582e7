internal import EventLoop

/// A listening socket with a watch for waiting connections. Lives on its loop.
final class Acceptor {
    let socket: ListeningSocket
    private let watch: DescriptorWatch

    /// Creates an acceptor, which accepts nothing before ``resume()``.
    /// - Parameter accept: Called when connections wait.
    init(_ socket: consuming ListeningSocket, loop: EventLoop, accept: @escaping (Acceptor) -> Void) {
        final class Place {
            weak var acceptor: Acceptor?
        }
        let place = Place()
        watch = DescriptorWatch(loop: loop, descriptor: socket.rawValue) { _ in
            if let acceptor = place.acceptor { accept(acceptor) }
        }
        self.socket = socket
        place.acceptor = self
    }

    func pause() { watch.setReading(false) }
    func resume() { watch.setReading(true) }

    /// Stops accepting. Call it before the last reference is released.
    func stop() { watch.cancel() }
}
