internal import CLibPQ
public import EventLoop
internal import Glibc

/// Administrative SQL that the program itself composes, without values from outside.
public enum PostgresScript {
    /// Runs `scripts` in order on one connection of their own and discards the results.
    ///
    /// Each is one request of the simple protocol, so `CREATE DATABASE` works as well as several statements in one
    /// text.
    public static func run(
        _ scripts: [String], configuration: PostgresConfiguration, loop: EventLoop
    ) async throws(PostgresError) {
        try await loop.run { () async throws(PostgresError) in
            let connection = try await ScriptConnection.open(configuration, loop: loop)
            defer { connection.close() }
            for script in scripts { try await connection.run(script) }
        }
    }
}

/// A connection for migrations. It runs one request at a time, outside pipeline mode, so a text can have several
/// statements.
///
/// Lives on its loop, which it never blocks. Call ``close()`` when done.
package final class ScriptConnection {
    private let loop: EventLoop
    private let handle: ConnectionHandle
    private var watch: DescriptorWatch?
    private var continuation: UnsafeContinuation<Void, Never>?

    private init(loop: EventLoop, handle: ConnectionHandle) {
        self.loop = loop
        self.handle = handle
    }

    /// Opens a connection to the first server of the connection string that replies within the configured time.
    /// - Throws: ``PostgresError/unavailable(retryAfter:because:)`` when none does, with the last server's reason.
    package static func open(
        _ configuration: PostgresConfiguration, loop: EventLoop
    ) async throws(PostgresError) -> ScriptConnection {
        loop.preconditionInLoop()
        func unavailable(_ reason: ConnectionFailure) -> PostgresError {
            .unavailable(retryAfter: .seconds(1), because: reason)
        }
        let hosts = HostList(configuration.connectionOptions())
        let names = hosts.names
        var resolved = HostResolver.Resolved()
        let resolver = HostResolver(loop: loop)
        if !names.isEmpty {
            let hasOthers = hosts.serverCount(addresses: [:]) > 0
            resolved = await withUnsafeContinuation { continuation in
                resolver.resolve(names, hasOthers: hasOthers) { continuation.resume(returning: $0) }
            }
        }
        // A frozen server accepts connections and never replies, so libpq itself would not try the next one.
        var failure = resolved.failure ?? .other
        for serverIndex in 0..<hosts.serverCount(addresses: resolved.addresses) {
            guard let options = hosts.options(addresses: resolved.addresses, serverIndex: serverIndex) else { break }
            do throws(ConnectionFailure) {
                return try await open(options, configuration, loop: loop)
            } catch {
                failure = error
            }
        }
        throw unavailable(failure)
    }

    private static func open(
        _ options: HostList.Options, _ configuration: PostgresConfiguration, loop: EventLoop
    ) async throws(ConnectionFailure) -> ScriptConnection {
        guard let handle = ConnectionHandle(starting: options) else { throw .other }
        let connection = ScriptConnection(loop: loop, handle: handle)
        let timer = LoopTimer(loop: loop) { connection.close() }
        timer.schedule(after: configuration.connectTimeout)
        defer { timer.cancel() }
        var interest = DescriptorWatch.Readiness.writable
        while PQstatus(handle.pointer) != CONNECTION_BAD, await connection.ready(interest) {
            switch PQconnectPoll(handle.pointer) {
            case PGRES_POLLING_READING: interest = .readable
            case PGRES_POLLING_WRITING: interest = .writable
            case PGRES_POLLING_OK:
                guard PQsetnonblocking(handle.pointer, 1) == 0 else { throw .other }
                return connection
            default: throw handle.failure
            }
        }
        if connection.isClosed { throw .timedOut }
        throw handle.failure
    }

    /// Runs a text of one or more statements with the simple protocol, and discards the results.
    package func run(_ script: String) async throws(PostgresError) {
        guard PQsendQuery(handle.pointer, script) == 1 else { throw .connectionLost }
        _ = try await results()
    }

    /// Runs one statement.
    func execute<S: Statement>(_ statement: S) async throws(PostgresError) -> [S.Row] {
        var parameters = Parameters()
        statement.bind(to: &parameters)
        let isSent = parameters.withArrays { count, types, values, lengths, formats in
            PQsendQueryParams(handle.pointer, S.sql.text, count, types, values, lengths, formats, 1) == 1
        }
        guard isSent else { throw .connectionLost }
        let execution = try await results()
        return try execution.takeRows(of: S.self, at: 0)
    }

    /// True if a transaction is open and has not failed.
    var isInTransaction: Bool { PQtransactionStatus(handle.pointer) == PQTRANS_INTRANS }

    /// True between requests, outside a transaction, while the server has sent nothing: neither its end nor an error.
    package var isIdle: Bool {
        var socket = pollfd(fd: PQsocket(handle.pointer), events: Int16(POLLIN), revents: 0)
        return !isClosed && PQtransactionStatus(handle.pointer) == PQTRANS_IDLE && poll(&socket, 1, 0) == 0
    }

    /// Ends a pending wait. The object's release closes the connection itself.
    package func close() {
        watch?.cancel()
        watch = nil
        continuation?.resume()
        continuation = nil
        isClosed = true
    }
    private var isClosed = false

    /// Waits for every pending result.
    private func results() async throws(PostgresError) -> Execution {
        let execution = Execution()
        var failure: PostgresError?
        while true {
            let flushed = PQflush(handle.pointer)
            if flushed < 0 { throw .connectionLost }
            if flushed > 0 {
                guard await ready(.writable) else { throw .connectionLost }
                continue
            }
            while PQisBusy(handle.pointer) == 0 {
                guard let result = PQgetResult(handle.pointer) else {
                    if let failure { throw failure }
                    return execution
                }
                switch PQresultStatus(result) {
                case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: execution.keep(result)
                case PGRES_FATAL_ERROR:
                    failure = ServerError(result: result).map { .server($0) } ?? .connectionLost
                    PQclear(result)
                default:
                    // COPY would wait for data that is never sent.
                    PQclear(result)
                    throw .connectionLost
                }
            }
            guard await ready(.readable) else { throw .connectionLost }
            // Decrypted bytes beyond libpq's buffer do not make the socket readable.
            repeat {
                guard PQconsumeInput(handle.pointer) == 1 else { throw .connectionLost }
            } while saltern_has_pending_tls_input(handle.pointer) != 0
        }
    }

    /// Waits for the socket.
    /// - Returns: False if the connection was closed.
    private func ready(_ readiness: DescriptorWatch.Readiness) async -> Bool {
        let descriptor = PQsocket(handle.pointer)
        guard descriptor >= 0, !isClosed else { return false }
        let watch = DescriptorWatch(loop: loop, descriptor: descriptor) { [unowned self] _ in
            self.watch?.cancel()
            self.watch = nil
            continuation?.resume()
            continuation = nil
        }
        self.watch = watch
        await withUnsafeContinuation { continuation in
            self.continuation = continuation
            switch readiness {
            case .readable: watch.setReading(true)
            case .writable: watch.setWriting(true)
            }
        }
        return !isClosed
    }
}

/// Splits a text of SQL into statements.
enum ScriptText {
    /// Returns the statements in order, each with the comments before it and its semicolon.
    ///
    /// It skips comments, strings, quoted names and dollar quotes (PostgreSQL, Lexical Structure). It does not support
    /// nested comments and unquoted bodies of functions (`BEGIN ATOMIC`).
    static func statements(of text: String) -> [Substring] {
        let token =
            #/
            (?<blank> \s+ | --[^\n]* | /\*(?s:.*?)\*/ )
            | (?<end> ; )
            | [eE]'(?: [^'\\] | \\. | '' )*' | '[^']*' | "[^"]*" | \$(?<tag>\w*)\$(?s:.*?)\$\k<tag>\$ | \w[\w$]* | .
            /#
        var statements: [Substring] = []
        var (start, hasContent) = (text.startIndex, false)
        for match in text.matches(of: token) {
            hasContent = hasContent || match.blank == nil && match.end == nil
            guard match.end != nil else { continue }
            if hasContent { statements.append(text[start..<match.range.upperBound]) }
            (start, hasContent) = (match.range.upperBound, false)
        }
        return hasContent ? statements + [text[start...]] : statements
    }
}
