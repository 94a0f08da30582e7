internal import COpenSSL
internal import Cryptography
internal import Glibc

/// TLS on one non-blocking socket.
///
/// It does not own the descriptor: close it after ``shutdown()``, and do not use the connection afterwards. One
/// thread at a time may use a connection, which is why it is not `Sendable`.
///
/// OpenSSL writes to the socket with `write(2)`, so a peer that has gone raises SIGPIPE: the executable that
/// serves or connects has to ignore that signal once, at its start (`signal(SIGPIPE, SIG_IGN)`).
public final class TLSConnection {
    /// Where a handshake stands.
    public enum HandshakeProgress: Hashable, Sendable {
        case finished
        case wantsRead
        case wantsWrite
    }

    /// What a read brought.
    public enum ReadResult: Hashable, Sendable {
        /// So many bytes, at least one.
        case bytes(Int)
        /// To be called again when the socket is readable, which it may be still: ask for its level, not its edge.
        case wantsRead
        case wantsWrite
        /// The peer said that it will send nothing more.
        case closed
    }

    /// What a write took.
    public enum WriteResult: Hashable, Sendable {
        /// So many bytes, at least one, perhaps fewer than offered.
        case bytes(Int)
        case wantsRead
        case wantsWrite
    }

    /// `SSL *`, owned. It holds a reference of its own to its context.
    let ssl: OpaquePointer
    /// The pins that a client expects; `nil` when it trusts in another way, and on the server's side.
    private let pins: Set<SPKIPin>?
    private var state = State.handshaking

    private enum State {
        case handshaking
        case established
        case failed
    }

    /// The server's side of a connection.
    public init(context: TLSServerContext, descriptor: Int32) throws(TLSError) {
        ssl = try Self.make(context.context, descriptor)
        pins = nil
        SSL_set_accept_state(ssl)
    }

    /// The client's side of a connection.
    ///
    /// `hostName` is sent to the server (SNI); with the system's authorities its certificate must bear it.
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

    /// Goes on with the handshake; to be called again when the socket is ready for what it wants.
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

    /// Reads what is there into `buffer`, which must not be empty, after the handshake.
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
    /// After `.wantsRead` or `.wantsWrite` the next write has to start with the same bytes (they may have moved
    /// in memory, and more may follow): part of them may be in an encrypted record already.
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

    /// Tells the peer that nothing more will be sent. Best effort: it does not wait, and it cannot fail.
    public func shutdown() {
        guard state == .established else { return }
        OpenSSLError.clearQueue()
        SSL_shutdown(ssl)
        OpenSSLError.clearQueue()
    }

    /// True when bytes were read from the socket and not returned yet, so that its readiness may not be reported
    /// for them. They can be part of a record: then a read says that it wants more.
    public var hasPendingBytes: Bool { SSL_has_pending(ssl) == 1 }

    private enum Outcome {
        case wantsRead
        case wantsWrite
        case closed
    }

    private func prepareTransfer() throws(TLSError) {
        // OpenSSL would shake hands by itself, and a client would send before the pins are compared.
        precondition(state != .handshaking, "the handshake must be finished first")
        try prepare()
    }

    private func prepare() throws(TLSError) {
        guard state != .failed else { throw .failedBefore }
        // SSL_get_error looks at the thread's whole queue: an old entry would pass for an error of this call.
        OpenSSLError.clearQueue()
    }

    /// What a call that did not succeed means.
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
    /// The protocol that ALPN chose; `nil` when the client did not use ALPN.
    public var negotiatedProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &length)
        guard let name, length > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
    }

    /// True when the handshake resumed an earlier session.
    public var wasResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// The version in use; `nil` before the handshake is finished.
    public var version: TLSVersion? {
        SSL_is_init_finished(ssl) == 1 ? TLSVersion(number: SSL_version(ssl)) : nil
    }

    /// OpenSSL's name of the cipher suite in use; `nil` before the handshake chose one.
    public var cipherSuite: String? {
        guard let cipher = SSL_get_current_cipher(ssl) else { return nil }
        return String(cString: SSL_CIPHER_get_name(cipher))
    }

    /// The peer's certificate; `nil` on the server's side and before the handshake.
    public var peerCertificate: Certificate? {
        guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
        return Certificate(owner: Certificate.Owner(takingOwnershipOf: certificate))
    }

    /// Names the server that a client expects: in SNI, and to the check of its certificate.
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
            // RFC 6066 section 3: an address is never sent as SNI.
            if case .systemAuthorities = trust {
                isDone = X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl), bytes, bytes.count) == 1
            }
        }
        guard isDone else { throw .protocolViolation(OpenSSLError(draining: "name the server")) }
    }
}
