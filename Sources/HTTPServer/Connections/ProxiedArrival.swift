internal import EventLoop
internal import Glibc
internal import HTTPCore

/// A connection from a proxy before the name of its client (``ProxyHeader``). Lives on its loop until the end of the
/// header.
///
/// It reads exactly the header, so that TLS begins with the next byte.
final class ProxiedArrival {
    let peer: ClientAddress
    private var descriptor: OwnedDescriptor?
    private var bytes: [UInt8] = []
    /// The length of the header, as far as known.
    private var length = ProxyHeader.prefixLength
    private var watch: DescriptorWatch?
    private var timer: LoopTimer?
    private var completion: ((ProxiedArrival, ProxyHeader?) -> Void)?

    /// - Parameters:
    ///   - deadline: The time limit of the header.
    ///   - completion: Called once with the header, or with nil without one. Not called after ``close()``.
    init(
        takingOwnershipOf descriptor: consuming OwnedDescriptor, from peer: ClientAddress, loop: EventLoop,
        deadline: Duration, completion: @escaping (ProxiedArrival, ProxyHeader?) -> Void
    ) {
        self.peer = peer
        self.completion = completion
        let rawValue = descriptor.rawValue
        self.descriptor = consume descriptor
        let watch = DescriptorWatch(loop: loop, descriptor: rawValue) { [unowned self] _ in read(rawValue) }
        self.watch = watch
        let timer = LoopTimer(loop: loop) { [unowned self] in finish(nil) }
        self.timer = timer
        timer.schedule(after: deadline)
        watch.setReading(true)
    }

    /// Returns the socket for the connection. Nil after it was taken or closed.
    func takeDescriptor() -> OwnedDescriptor? { descriptor.take() }

    /// Ends the arrival without a call of the completion. Further calls have no effect.
    func close() {
        completion = nil
        stop()
        _ = descriptor.take()
    }

    private func stop() {
        watch?.cancel()
        watch = nil
        timer?.cancel()
        timer = nil
    }

    private func read(_ rawValue: CInt) {
        while true {
            let missing = length - bytes.count
            let count = withUnsafeTemporaryAllocation(byteCount: missing, alignment: 1) { buffer in
                let count = recv(rawValue, buffer.baseAddress, missing, 0)
                if count > 0 { bytes.append(contentsOf: buffer[..<count]) }
                return count
            }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            guard count > 0, ProxyHeader.mayBegin(with: bytes) else { return finish(nil) }
            guard bytes.count == length else { continue }
            if length == ProxyHeader.prefixLength {
                guard let rest = ProxyHeader.restLength(prefix: bytes[...]) else { return finish(nil) }
                length += rest
                if rest > 0 { continue }
            }
            return finish(ProxyHeader(bytes))
        }
    }

    private func finish(_ header: ProxyHeader?) {
        guard let completion = completion.take() else { return }
        stop()
        completion(self, header)
    }
}
