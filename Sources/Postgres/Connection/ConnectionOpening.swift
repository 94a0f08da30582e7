internal import CLibPQ
internal import EventLoop

/// The way from the names of servers to a connection that one of them has accepted. Lives on its loop.
final class ConnectionOpening {
    private let loop: EventLoop
    private let progress: () -> Void
    private let completion: (ConnectionHandle?) -> Void
    private var handle: ConnectionHandle?
    private var watch: DescriptorWatch?
    private var isOver = false
    /// Why a server's name has no address.
    private(set) var resolutionFailure: ConnectionFailure?
    /// Whether there are several servers.
    private(set) var hasChoice = false
    /// How many servers there are to begin with; 0 while their names are looked up.
    private(set) var serverCount = 0

    /// - Parameters:
    ///   - progress: Called when a server, or who looks names up, has answered.
    ///   - completion: Takes the connection over; nil when there is none to be had.
    init(loop: EventLoop, progress: @escaping () -> Void, completion: @escaping (ConnectionHandle?) -> Void) {
        self.loop = loop
        self.progress = progress
        self.completion = completion
    }

    /// Why there is no connection, as far as that is known.
    var failure: ConnectionFailure? {
        resolutionFailure ?? handle.map { ConnectionFailure(message: String(cString: PQerrorMessage($0.pointer))) }
    }

    /// Starts to connect.
    /// - Parameters:
    ///   - rotation: Which of several servers is tried first.
    ///   - isAlone: Whether no other is tried.
    ///   - resolver: Who looks their names up.
    func start(_ hosts: HostList, rotation: Int, isAlone: Bool, resolver: HostResolver) {
        let names = hosts.names
        if names.isEmpty { return connect(hosts, addresses: [:], rotation: rotation, isAlone: isAlone) }
        resolver.resolve(names, hasOthers: hosts.serverCount(addresses: [:]) > 0) { [self] resolved in
            // It may have been given up while the names were looked up.
            guard !isOver else { return }
            progress()
            resolutionFailure = resolved.failure
            connect(hosts, addresses: resolved.addresses, rotation: rotation, isAlone: isAlone)
        }
    }

    /// Gives up; nobody is told.
    func cancel() {
        isOver = true
        watch?.cancel()
        watch = nil
        handle = nil
    }

    private func connect(_ hosts: HostList, addresses: [String: [String]], rotation: Int, isAlone: Bool) {
        serverCount = hosts.serverCount(addresses: addresses)
        let options = hosts.options(addresses: addresses, rotation: rotation, isAlone: isAlone)
        hasChoice = options?.contains { $0.keyword == "hostaddr" && $0.value.contains(",") } ?? false
        guard let options, let handle = ConnectionHandle(starting: options) else { return completion(nil) }
        self.handle = handle
        guard PQstatus(handle.pointer) != CONNECTION_BAD else { return completion(nil) }
        // libpq says that a fresh connection behaves as if the last poll had answered "writing".
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
