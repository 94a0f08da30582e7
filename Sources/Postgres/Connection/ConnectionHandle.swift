internal import CLibPQ
internal import EventLoop
internal import Glibc

/// Owns one `PGconn *` and finishes it in `deinit`.
final class ConnectionHandle {
    /// Valid as long as the handle. It is not stored elsewhere.
    let pointer: OpaquePointer
    private let notices = Notices()
    /// True after libpq could not store something to send. The connection has to be closed.
    private(set) var isBroken = false
    /// True after a statement that left the connection with more memory than others need. libpq's send buffer only
    /// grows.
    private(set) var isOutgrown = false

    /// Minimum size, in bytes, of a statement that is worth its own connection.
    private static let lastingByteLimit = 1_048_576

    /// Collects the server's notices.
    private final class Notices {
        var warnings = ServerWarnings()
    }

    /// Starts to connect with these libpq keywords. The caller polls.
    /// - Returns: `nil` when memory is short.
    init?(starting options: [(keyword: String, value: String)]) {
        var keywords: [UnsafePointer<CChar>?] = options.map { UnsafePointer(strdup($0.keyword)) }
        var values: [UnsafePointer<CChar>?] = options.map { UnsafePointer(strdup($0.value)) }
        defer {
            for string in keywords + values { free(UnsafeMutablePointer(mutating: string)) }
        }
        keywords.append(nil)
        values.append(nil)
        guard let pointer = PQconnectStartParams(keywords, values, 0) else { return nil }
        self.pointer = pointer
        // Errors of the server during connection set-up have their code only in their text.
        PQsetErrorVerbosity(pointer, PQERRORS_SQLSTATE)
        // Notices can quote values, and libpq would print them on standard error. Only functions of the connection call
        // the receiver, and this object outlives it.
        let context = Unmanaged.passUnretained(notices).toOpaque()
        PQsetNoticeReceiver(
            pointer,
            { context, result in
                guard let context, let result else { return }
                // The names of these fields are the characters V and R (postgres_ext.h).
                guard let severity = PQresultErrorField(result, CInt(UInt8(ascii: "V"))),
                    strcmp(severity, "WARNING") == 0
                else { return }
                let function = PQresultErrorField(result, CInt(UInt8(ascii: "R"))).map { String(cString: $0) }
                Unmanaged<Notices>.fromOpaque(context).takeUnretainedValue().warnings.note(from: function)
            }, context)
    }

    /// Returns the warnings since the last call.
    func takeWarnings() -> ServerWarnings {
        defer { notices.warnings = ServerWarnings() }
        return notices.warnings
    }

    /// libpq's report of the last failure.
    var failure: ConnectionFailure { ConnectionFailure(message: String(cString: PQerrorMessage(pointer))) }

    deinit { PQfinish(pointer) }
}

/// Pipeline mode. Data is stored in libpq's send buffer until a flush.
extension ConnectionHandle {
    /// Begins pipeline mode.
    /// - Returns: False if libpq refused.
    func beginPipeline() -> Bool { PQsetnonblocking(pointer, 1) == 0 && PQenterPipelineMode(pointer) == 1 }

    /// Sends a command without parameters.
    func send(_ command: String) {
        if PQsendQueryParams(pointer, command, 0, nil, nil, nil, nil, 1) != 1 { isBroken = true }
    }

    /// Sends the preparation of a statement with parameters of these types.
    /// - Returns: False if it could not be stored.
    func prepare(
        _ name: UnsafePointer<CChar>, _ sql: UnsafePointer<CChar>, _ parameters: inout Parameters
    ) -> Bool {
        let isSent = parameters.withArrays { count, types, _, _, _ in
            PQsendPrepare(pointer, name, sql, count, types) == 1
        }
        if !isSent { isBroken = true }
        return isSent
    }

    /// Sends a prepared statement with its parameters.
    func execute(_ name: UnsafePointer<CChar>, _ parameters: inout Parameters) {
        if parameters.byteCount > Self.lastingByteLimit { isOutgrown = true }
        let isSent = parameters.withArrays { count, _, values, lengths, formats in
            PQsendQueryPrepared(pointer, name, count, values, lengths, formats, 1) == 1
        }
        if !isSent { isBroken = true }
    }

    /// Makes the server send its replies so far.
    func requestReplies() { if PQsendFlushRequest(pointer) != 1 { isBroken = true } }

    /// Sends a sync, unless the connection is broken.
    /// - Returns: False if it is broken.
    func sync() -> Bool {
        if !isBroken, saltern_queue_pipeline_sync(pointer) != 1 { isBroken = true }
        return !isBroken
    }
}

/// Collects the server's warnings that put a commit in doubt.
///
/// The server's function that warned identifies a warning. Messages are translated, and nearly all warnings have the
/// same code (01000). Their time is no criterion: a trigger can wait for the commit, and a commit can be part of a
/// statement.
struct ServerWarnings: Equatable {
    /// True if a commit did not wait for a standby, or the function is unknown.
    private var isAboutStandby = false
    /// True if another function warned, possibly about other nodes.
    private var isAboutOthers = false

    /// The only function in which PostgreSQL stops waiting for a synchronous standby. The commit itself has succeeded.
    private static let standbyWait = "SyncRepWaitForLSN"
    /// Warnings of triggers, and of transaction numbers running out.
    private static let aboutNoCommit: Set = ["exec_stmt_raise", "GetNewTransactionId", "GetNewMultiXactId"]

    /// - Parameter function: The name of the function that warned, if the server sent it.
    mutating func note(from function: String?) {
        guard let function, function != Self.standbyWait else { return isAboutStandby = true }
        if !Self.aboutNoCommit.contains(function) { isAboutOthers = true }
    }

    /// Returns true if a standby or node may lack a commit.
    /// - Parameter isDistributed: True on a cluster. Citus warns in many places about nodes that did not commit, and
    ///   passes on warnings of other nodes.
    func leaveDoubt(isDistributed: Bool) -> Bool { isAboutStandby || isDistributed && isAboutOthers }
}

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
        resolutionFailure ?? handle?.failure
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
