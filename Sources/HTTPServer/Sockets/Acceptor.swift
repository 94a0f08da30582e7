internal import EventLoop

/// A listening socket and the interest in connections that wait there. Lives on its loop.
final class Acceptor {
    let socket: ListeningSocket
    private let watch: DescriptorWatch

    /// Makes one that does not accept before ``resume()``.
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

    /// Accepts no more. To be called before the last reference goes.
    func stop() { watch.cancel() }
}
