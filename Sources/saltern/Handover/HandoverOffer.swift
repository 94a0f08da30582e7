import CUnixSocket
import EventLoop
import Foundation
import HTTPServer
import SalternServer

/// The offer of a server that serves: whoever of the same user connects gets its listening sockets. Lives on its loop.
final class HandoverOffer {
    private let loop: EventLoop
    private let path: String
    private let listener: SharedDescriptor
    private let sockets: @Sendable () async -> (api: ListeningSockets, metrics: ListeningSockets)
    private let completion: @Sendable () -> Void
    private var watch: DescriptorWatch?
    /// Whether another server is at the path.
    private var isTaken = false
    private var heir: (channel: SharedDescriptor, watch: DescriptorWatch)?

    /// Begins to listen at `path`, in place of whoever did before.
    /// - Parameters:
    ///   - sockets: Copies of what is handed over.
    ///   - completion: Another server serves from now on.
    init(
        at path: String, loop: EventLoop,
        sockets: @escaping @Sendable () async -> (api: ListeningSockets, metrics: ListeningSockets),
        completion: @escaping @Sendable () -> Void
    ) throws {
        self.loop = loop
        self.path = path
        self.sockets = sockets
        self.completion = completion
        listener = try SharedDescriptor(UnixSocket.open(path, nonBlocking: true))
        // In one step, so that there is always somebody at the path.
        let place = path + ".next"
        for name in [path, place] { try UnixSocket.requireReplaceable(name) }
        unlink(place)
        guard UnixSocket.withAddress(place, { bind(listener.rawValue, $0, $1) }) == 0 else {
            throw HandoverFailure("bind", place)
        }
        guard chmod(place, 0o600) == 0, listen(listener.rawValue, 8) == 0, rename(place, path) == 0 else {
            let code = errno
            unlink(place)
            throw HandoverFailure("listen", path, code)
        }
        let watch = DescriptorWatch(loop: loop, descriptor: listener.rawValue) { [unowned self] _ in accept() }
        watch.setReading(true)
        self.watch = watch
    }

    /// Offers nothing any more. To be called before the last reference goes.
    func end() {
        watch?.cancel()
        watch = nil
        forgetHeir()
        if !isTaken { unlink(path) }
    }

    private func accept() {
        let raw = Foundation.accept(listener.rawValue, nil, nil)
        // One at a time: a second one asks again.
        guard let descriptor = try? OwnedDescriptor(takingOwnershipOf: raw), heir == nil, UnixSocket.isTrusted(raw),
            fcntl(raw, F_SETFD, FD_CLOEXEC) == 0, fcntl(raw, F_SETFL, O_NONBLOCK) == 0
        else { return }
        let channel = SharedDescriptor(descriptor)
        let watch = DescriptorWatch(loop: loop, descriptor: raw) { [unowned self] _ in hear() }
        watch.setReading(true)
        heir = (channel, watch)
        let bound = LoopBound(self, loop: loop)
        Task(executorPreference: loop) { [sockets] in
            let (api, metrics) = await sockets()
            bound.value.send(api, metrics, on: channel)
        }
    }

    private func send(_ api: ListeningSockets, _ metrics: ListeningSockets, on channel: SharedDescriptor) {
        guard heir?.channel === channel else { return }
        let text = Array(
            HandoverMessage(apiCount: api.rawValues.count, metricsCount: metrics.rawValues.count).text.utf8)
        let descriptors = api.rawValues + metrics.rawValues
        let sent = saltern_send_descriptors(channel.rawValue, text, text.count, descriptors, CInt(descriptors.count))
        if sent != text.count { forgetHeir() }
    }

    private func hear() {
        guard let heir else { return }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = recv(heir.channel.rawValue, &bytes, bytes.count, 0)
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return }
        let serves = count > 0 && bytes.prefix(count).elementsEqual(HandoverMessage.confirmation.utf8)
        forgetHeir()
        if serves {
            isTaken = true
            completion()
        }
    }

    private func forgetHeir() {
        heir?.watch.cancel()
        heir = nil
    }
}
