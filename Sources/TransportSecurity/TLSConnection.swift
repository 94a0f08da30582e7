internal import COpenSSL
public import Cryptography
internal import Glibc

/// TLS on one non-blocking socket.
///
/// It does not own the descriptor. Close that after ``shutdown()``, and do not use the connection afterwards. It is not
/// `Sendable`, because only one thread at a time may use it.
///
/// OpenSSL writes to the socket with `write(2)`, so a closed peer raises SIGPIPE. The executable has to ignore that
/// signal once, at its start (`signal(SIGPIPE, SIG_IGN)`).
public final class TLSConnection {
    /// The state of a handshake.
    public enum HandshakeProgress: Hashable, Sendable {
        case finished
        case wantsRead
        case wantsWrite
    }

    /// The result of a read.
    public enum ReadResult: Hashable, Sendable {
        /// The number of bytes, at least one.
        case bytes(Int)
        /// No bytes yet. Call again when the socket is readable. It may be readable still, so wait for its level, not
        /// its edge.
        case wantsRead
        case wantsWrite
        /// The peer has announced the end of its data.
        case closed
    }

    /// The result of a write.
    public enum WriteResult: Hashable, Sendable {
        /// The number of bytes taken: at least one, perhaps fewer than offered.
        case bytes(Int)
        case wantsRead
        case wantsWrite
    }

    /// `SSL *`, owned. It retains its context.
    let ssl: OpaquePointer
    /// The pins that a client expects; `nil` with other trust, and on the server's side.
    private let pins: Set<SPKIPin>?
    private var state = State.handshaking

    private enum State {
        case handshaking
        case established
        case failed
    }

    /// Creates the server's side of a connection.
    public init(context: TLSServerContext, descriptor: Int32) throws(TLSError) {
        ssl = try Self.make(context.context, descriptor)
        pins = nil
        SSL_set_accept_state(ssl)
    }

    /// Creates the client's side of a connection.
    ///
    /// `hostName` is sent to the server (SNI). With the system's authorities, the certificate must contain it.
    public init(context: TLSClientContext, descriptor: Int32, hostName: String?) throws(TLSError) {
        ssl = try Self.make(context.context, descriptor)
        switch context.trust {
        case .pins(let pins): self.pins = pins
        case .systemAuthorities: self.pins = nil
        }
        SSL_set_connect_state(ssl)
        if let hostName { try expect(hostName, context.trust) }
    }

    deinit { SSL_free(ssl) }

    private static func make(_ context: TLSContext, _ descriptor: Int32) throws(TLSError) -> OpaquePointer {
        OpenSSLError.clearQueue()
        guard let ssl = SSL_new(context.pointer) else {
            throw .protocolViolation(OpenSSLError(draining: "make a TLS connection"))
        }
        guard SSL_set_fd(ssl, descriptor) == 1 else {
            let error = OpenSSLError(draining: "attach a socket to TLS")
            SSL_free(ssl)
            throw .protocolViolation(error)
        }
        return ssl
    }

    /// Continues the handshake. Call it again when the socket is ready for the returned operation.
    public func handshake() throws(TLSError) -> HandshakeProgress {
        try prepare()
        let status = SSL_do_handshake(ssl)
        guard status != 1 else {
            try checkPins()
            state = .established
            return .finished
        }
        switch try outcome(status, of: "TLS handshake") {
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        case .closed: throw fail(.closedWithoutNotification)
        }
    }

    /// Reads the available bytes into `buffer`, which must not be empty, after the handshake.
    public func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> ReadResult {
        precondition(!buffer.isEmpty, "the buffer must not be empty")
        try prepareTransfer()
        var count = 0
        let status = SSL_read_ex(ssl, buffer.baseAddress, buffer.count, &count)
        guard status != 1 else { return .bytes(count) }
        switch try outcome(status, of: "read from TLS") {
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        case .closed: return .closed
        }
    }

    /// Writes as much of `bytes`, which must not be empty, as the socket takes, after the handshake.
    ///
    /// After `.wantsRead` or `.wantsWrite` the next write has to start with the same bytes, because an encrypted record
    /// may contain a part of them. They may have moved in memory, and more bytes may follow.
    public func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> WriteResult {
        precondition(!bytes.isEmpty, "the data must not be empty")
        try prepareTransfer()
        var count = 0
        let status = SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &count)
        guard status != 1 else { return .bytes(count) }
        switch try outcome(status, of: "write to TLS") {
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        case .closed: throw fail(.closedWithoutNotification)
        }
    }

    /// Announces the end of data to the peer. Best effort: it neither waits nor fails.
    public func shutdown() {
        guard state == .established else { return }
        OpenSSLError.clearQueue()
        SSL_shutdown(ssl)
        OpenSSLError.clearQueue()
    }

    /// True when bytes were read from the socket and not returned yet. The socket may not become readable for them.
    /// They can be a part of a record; then a read returns ``ReadResult/wantsRead``.
    public var hasPendingBytes: Bool { SSL_has_pending(ssl) == 1 }

    private enum Outcome {
        case wantsRead
        case wantsWrite
        case closed
    }

    private func prepareTransfer() throws(TLSError) {
        // OpenSSL would perform the handshake by itself. A client would then send before the check of the pins.
        precondition(state != .handshaking, "the handshake must be finished first")
        try prepare()
    }

    private func prepare() throws(TLSError) {
        guard state != .failed else { throw .failedBefore }
        // SSL_get_error reads the thread's whole queue. An old entry would count as an error of this call.
        OpenSSLError.clearQueue()
    }

    /// Returns the meaning of a failed call's status.
    private func outcome(_ status: Int32, of operation: String) throws(TLSError) -> Outcome {
        let systemError = errno
        switch SSL_get_error(ssl, status) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .closed
        case SSL_ERROR_SYSCALL:
            OpenSSLError.clearQueue()
            throw fail(systemError == 0 ? .closedWithoutNotification : .socket(errno: systemError))
        default:
            let error = OpenSSLError(draining: operation)
            let isEnd = error.stack.contains {
                $0.library == ERR_LIB_SSL && $0.reason == SSL_R_UNEXPECTED_EOF_WHILE_READING
            }
            throw fail(isEnd ? .closedWithoutNotification : .protocolViolation(error))
        }
    }

    private func fail(_ error: TLSError) -> TLSError {
        state = .failed
        return error
    }

    private func checkPins() throws(TLSError) {
        guard let pins else { return }
        guard let certificate = peerCertificate, pins.contains(certificate.pin) else { throw fail(.pinMismatch) }
    }
}

extension TLSConnection {
    /// The protocol that ALPN selected; `nil` without ALPN.
    public var negotiatedProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &length)
        guard let name, length > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
    }

    /// True when the handshake resumed an earlier session.
    public var wasResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// The TLS version; `nil` before the end of the handshake.
    public var version: TLSVersion? {
        SSL_is_init_finished(ssl) == 1 ? TLSVersion(number: SSL_version(ssl)) : nil
    }

    /// OpenSSL's name of the cipher suite; `nil` before its selection.
    public var cipherSuite: String? {
        guard let cipher = SSL_get_current_cipher(ssl) else { return nil }
        return String(cString: SSL_CIPHER_get_name(cipher))
    }

    /// The peer's certificate; `nil` on the server's side and before the handshake.
    public var peerCertificate: Certificate? {
        guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
        return Certificate(owner: Certificate.Owner(takingOwnershipOf: certificate))
    }

    /// Sets the server name that a client expects, for SNI and for the check of the certificate.
    private func expect(_ hostName: String, _ trust: TLSClientContext.Trust) throws(TLSError) {
        let host: Host
        do { host = try Host(hostName) } catch {
            throw .protocolViolation(OpenSSLError(draining: "name the server: \(error)"))
        }
        var isDone = true
        switch host {
        case .name(let name):
            isDone = saltern_SSL_set_host_name(ssl, name) == 1
            if case .systemAuthorities = trust { isDone = isDone && SSL_set1_host(ssl, name) == 1 }
        case .address(let bytes):
            // RFC 6066 section 3 forbids addresses in SNI.
            if case .systemAuthorities = trust {
                isDone = X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl), bytes, bytes.count) == 1
            }
        }
        guard isDone else { throw .protocolViolation(OpenSSLError(draining: "name the server")) }
    }
}

/// The reason for the end of a TLS connection. Waiting to read or write is no error.
public enum TLSError: Error, Hashable, Sendable {
    /// The peer closed the connection without TLS's notification, so its data may be truncated.
    case closedWithoutNotification
    /// The socket failed with this `errno`.
    case socket(errno: Int32)
    /// The peers do not agree on TLS: wrong version, no common suite, invalid bytes, or an alert.
    case protocolViolation(OpenSSLError)
    /// The server's key has none of the pins that the client expects.
    case pinMismatch
    /// The connection has already failed and cannot be used again.
    case failedBefore
}

extension TLSError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .closedWithoutNotification: "the peer closed the connection without a TLS close_notify"
        case .socket(let errno): "the socket failed: \(SystemError.text(errno))"
        case .protocolViolation(let error): "TLS failed: \(error)"
        case .pinMismatch: "the server's key has none of the expected pins"
        case .failedBefore: "the TLS connection failed earlier"
        }
    }
}
