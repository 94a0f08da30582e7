import CUnixSocket
import EventLoop
import Foundation
import HTTPServer
import SalternServer

/// The handover offer of a running server: a process of the same user that connects receives its listening sockets.
///
/// Lives on its loop.
final class HandoverOffer {
    private let loop: EventLoop
    private let sockets: @Sendable () async -> (api: ListeningSockets, metrics: ListeningSockets)
    private let completion: @Sendable () -> Void
    private let patience: Duration
    private var place: HandoverPlace
    private var listener: SharedDescriptor?
    private var watch: DescriptorWatch?
    private var timer: LoopTimer?
    /// True once another server serves. The socket at the path then belongs to that one.
    private var isOver = false
    private var successor: (channel: SharedDescriptor, watch: DescriptorWatch)?

    /// Prepares the socket beside `path`. It is not reachable at the path before ``open()``.
    /// - Parameters:
    ///   - patience: The time limit of the successor, from its request until it is ready.
    ///   - sockets: Returns copies of the listening sockets.
    ///   - completion: Called when another server serves.
    init(
        at path: String, loop: EventLoop, patience: Duration = .seconds(15),
        sockets: @escaping @Sendable () async -> (api: ListeningSockets, metrics: ListeningSockets),
        completion: @escaping @Sendable () -> Void
    ) throws {
        self.loop = loop
        self.patience = patience
        self.sockets = sockets
        self.completion = completion
        let listener = try SharedDescriptor(UnixSocket.open(path, nonBlocking: true))
        place = try HandoverPlace(at: path, binding: listener.rawValue)
        self.listener = listener
    }

    /// Moves to the path, in place of an earlier server's socket.
    func open() throws {
        guard let listener else { return }
        try place.take()
        timer = LoopTimer(loop: loop) { [unowned self] in removeSuccessor() }
        let watch = DescriptorWatch(loop: loop, descriptor: listener.rawValue) { [unowned self] _ in
            accept(from: listener)
        }
        watch.setReading(true)
        self.watch = watch
    }

    /// Ends the offer. Call it before releasing the last reference.
    func end() {
        watch?.cancel()
        watch = nil
        // The file is removed while a successor still waits, so that the successor's own file stays.
        if !isOver { place.leave() }
        // Connected processes must not wait for a reply.
        listener = nil
        // After its release, a successor immediately checks whether a server still serves.
        removeSuccessor()
        timer?.cancel()
        timer = nil
    }

    private func accept(from listener: SharedDescriptor) {
        let raw = Foundation.accept(listener.rawValue, nil, nil)
        // One at a time: a second successor tries again.
        guard let descriptor = try? OwnedDescriptor(takingOwnershipOf: raw), successor == nil, !isOver,
            UnixSocket.isTrusted(raw), fcntl(raw, F_SETFD, FD_CLOEXEC) == 0, fcntl(raw, F_SETFL, O_NONBLOCK) == 0
        else { return }
        let channel = SharedDescriptor(descriptor)
        let watch = DescriptorWatch(loop: loop, descriptor: raw) { [unowned self] _ in receive() }
        watch.setReading(true)
        successor = (channel, watch)
        timer?.schedule(after: patience)
        let bound = LoopBound(self, loop: loop)
        Task(executorPreference: loop) { [sockets] in
            let (api, metrics) = await sockets()
            bound.value.send(api, metrics, on: channel)
        }
    }

    private func send(_ api: ListeningSockets, _ metrics: ListeningSockets, on channel: SharedDescriptor) {
        guard successor?.channel === channel else { return }
        let text = Array(
            HandoverMessage(apiCount: api.rawValues.count, metricsCount: metrics.rawValues.count).text.utf8)
        let descriptors = api.rawValues + metrics.rawValues
        let sent = saltern_send_descriptors(channel.rawValue, text, text.count, descriptors, CInt(descriptors.count))
        if sent != text.count { removeSuccessor() }
    }

    private func receive() {
        guard let channel = successor?.channel else { return }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = recv(channel.rawValue, &bytes, bytes.count, 0)
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return }
        let isReady = count > 0 && bytes.prefix(count).elementsEqual(HandoverMessage.readiness.utf8)
        // If the successor has gone or no longer waits, this cannot be sent, and this server continues.
        let isNotified = isReady && UnixSocket.send(HandoverMessage.yield, on: channel.rawValue)
        removeSuccessor()
        if isNotified {
            isOver = true
            completion()
        }
    }

    private func removeSuccessor() {
        timer?.pause()
        successor?.watch.cancel()
        successor = nil
    }
}

/// The path at which a server offers its sockets.
///
/// It is taken in two steps. Steps that can fail use another name. Then one call replaces any server's socket at the
/// path.
struct HandoverPlace {
    let path: String
    private let preparation: String
    private let identity: Identity
    private(set) var isTaken = false

    /// Distinguishes a file from a later one with the same name.
    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t

        init?(of path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else { return nil }
            device = status.st_dev
            inode = status.st_ino
        }
    }

    /// Binds `socket` beside `path`, and listens.
    /// - Throws: ``HandoverFailure``, also when the path or the name beside it is a file but not a socket.
    init(at path: String, binding socket: CInt) throws {
        self.path = path
        let name = Self.preparation(of: path)
        preparation = name
        try Self.requireRoom(at: path)
        unlink(name)
        guard UnixSocket.withAddress(name, { bind(socket, $0, $1) }) == 0 else { throw HandoverFailure("bind", name) }
        guard let identity = Identity(of: name), chmod(name, 0o600) == 0, listen(socket, 8) == 0 else {
            let code = errno
            unlink(name)
            throw HandoverFailure("listen", name, code)
        }
        self.identity = identity
    }

    /// - Throws: ``HandoverFailure`` when the path or the name beside it is a file but not a socket.
    static func requireRoom(at path: String) throws {
        for name in [path, preparation(of: path)] { try UnixSocket.requireReplaceable(name) }
    }

    private static func preparation(of path: String) -> String { path + ".next" }

    /// Moves to the path in one step, so that the path always leads to a server.
    mutating func take() throws {
        // Another server may have started meanwhile, removed the file, and created its own.
        guard Identity(of: preparation) == identity else { throw HandoverFailure("\(preparation) was removed") }
        guard rename(preparation, path) == 0 else { throw HandoverFailure("rename", path) }
        isTaken = true
    }

    /// Removes this server's own files.
    func leave() {
        for name in [path, preparation] where Identity(of: name) == identity { unlink(name) }
    }
}
