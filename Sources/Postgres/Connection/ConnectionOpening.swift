internal import CLibPQ
internal import EventLoop

/// Opens a connection: resolves the servers' names, and connects until a server accepts. Lives on its loop.
final class ConnectionOpening {
    private let loop: EventLoop
    private let progress: () -> Void
    private let completion: (ConnectionHandle?) -> Void
    private var handle: ConnectionHandle?
    private var watch: DescriptorWatch?
    private var isOver = false
    /// The reason why a server's name has no address.
    private(set) var resolutionFailure: ConnectionFailure?
    /// True if there are several servers.
    private(set) var hasChoice = false
    /// The number of servers at the start; 0 until their names are resolved.
    private(set) var serverCount = 0

    /// - Parameters:
    ///   - progress: Called for each reply of a server or the resolver.
    ///   - completion: Receives ownership of the connection; nil if none could be opened.
    init(loop: EventLoop, progress: @escaping () -> Void, completion: @escaping (ConnectionHandle?) -> Void) {
        self.loop = loop
        self.progress = progress
        self.completion = completion
    }

    /// The reason of the failure, if one is available.
    var failure: ConnectionFailure? {
        resolutionFailure ?? handle.map { ConnectionFailure(message: String(cString: PQerrorMessage($0.pointer))) }
    }

    /// Starts to connect.
    /// - Parameters:
    ///   - serverIndex: The index of the server to try first.
    ///   - isAlone: True to try only that server.
    ///   - resolver: Resolves the servers' names.
    func start(_ hosts: HostList, serverIndex: Int, isAlone: Bool, resolver: HostResolver) {
        let names = hosts.names
        if names.isEmpty { return connect(hosts, addresses: [:], serverIndex: serverIndex, isAlone: isAlone) }
        resolver.resolve(names, hasOthers: hosts.serverCount(addresses: [:]) > 0) { [self] resolved in
            // The opening may have been cancelled during resolution.
            guard !isOver else { return }
            progress()
            resolutionFailure = resolved.failure
            connect(hosts, addresses: resolved.addresses, serverIndex: serverIndex, isAlone: isAlone)
        }
    }

    /// Cancels the opening without calling `completion`.
    func cancel() {
        isOver = true
        watch?.cancel()
        watch = nil
        handle = nil
    }

    private func connect(_ hosts: HostList, addresses: [String: [String]], serverIndex: Int, isAlone: Bool) {
        serverCount = hosts.serverCount(addresses: addresses)
        let options = hosts.options(addresses: addresses, serverIndex: serverIndex, isAlone: isAlone)
        hasChoice = options?.contains { $0.keyword == "hostaddr" && $0.value.contains(",") } ?? false
        guard let options, let handle = ConnectionHandle(starting: options) else { return completion(nil) }
        self.handle = handle
        guard PQstatus(handle.pointer) != CONNECTION_BAD else { return completion(nil) }
        // According to libpq, a new connection behaves as if the last poll had returned "writing".
        watchSocket { $0.setWriting(true) }
    }

    private func poll() {
        guard let handle else { return }
        progress()
        // The poll may close this socket and open another under the same number.
        watch?.cancel()
        watch = nil
        switch PQconnectPoll(handle.pointer) {
        case PGRES_POLLING_READING: watchSocket { $0.setReading(true) }
        case PGRES_POLLING_WRITING: watchSocket { $0.setWriting(true) }
        case PGRES_POLLING_OK:
            isOver = true
            self.handle = nil
            completion(handle)
        default: completion(nil)
        }
    }

    private func watchSocket(_ setInterest: (DescriptorWatch) -> Void) {
        guard let handle else { return }
        let descriptor = PQsocket(handle.pointer)
        guard descriptor >= 0 else { return completion(nil) }
        let watch = DescriptorWatch(loop: loop, descriptor: descriptor) { [unowned self] _ in poll() }
        setInterest(watch)
        self.watch = watch
    }
}
