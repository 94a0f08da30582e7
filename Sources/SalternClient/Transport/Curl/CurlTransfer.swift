internal import CCurl
internal import COpenSSL
internal import Cryptography
internal import Synchronization

/// One request in progress, with its `CURL *`.
///
/// `@unchecked Sendable` is safe. Before the start only the creator uses the transfer. After it only the loop's thread
/// uses handle, fields and `receivedHead`. A lock protects the values that others read.
final class CurlTransfer: @unchecked Sendable {
    let handle: UnsafeMutableRawPointer
    private var fields: FieldList
    // libcurl reads the body in place until the transfer has ended.
    private let body: SecureBytes?
    private let sink: any TransferSink
    private let isStream: Bool
    private let pace: TransferPace?
    /// The number of the body's bytes that libcurl has received, if there is a pace.
    private var sentCount = 0
    private let headCount: Int
    /// Returns the longest time of the exchange for a number of transferred bytes.
    private let allowance: @Sendable (Int64) -> Duration
    private var begin = ContinuousClock.now
    private var status = 0
    private var receivedFields: [(name: String, value: String)] = []
    private var budget = FieldBudget()
    private var refusedReply = false

    private struct Waiting {
        var continuation: CheckedContinuation<Result<Void, TransportError>, Never>?
        var head: HTTPReplyHead?
        var hasEnded = false
    }
    private let waiting = Mutex(Waiting())

    /// - Returns: nil when libcurl rejects the configuration.
    init?(
        _ request: HTTPRequest, to server: CurlTransport.Server, pace: TransferPace?, isStream: Bool,
        sink: any TransferSink
    ) {
        guard let handle = curl_easy_init() else { return nil }
        self.handle = handle
        fields = FieldList()
        body = request.body
        self.sink = sink
        self.isStream = isStream
        self.pace = pace
        headCount = request.fields.reduce(request.target.utf8.count + 200) {
            $0 + $1.name.utf8.count + $1.value.utf8.count
        }
        let (timeout, rate) = (request.timeout, request.minimumRate)
        allowance = { HTTPRequest.allowance(timeout, rate, moved: $0) }
        // From here on deinit frees the handle, even when this fails.
        guard configure(request, server) else { return nil }
    }

    deinit { curl_easy_cleanup(handle) }

    private func configure(_ request: HTTPRequest, _ server: CurlTransport.Server) -> Bool {
        func set(_ option: CURLoption, _ value: Int) -> Bool {
            saltern_curl_set_long(handle, option, value) == CURLE_OK
        }
        func set(_ option: CURLoption, _ value: String) -> Bool {
            saltern_curl_set_string(handle, option, value) == CURLE_OK
        }
        guard set(CURLOPT_URL, server.base + request.target), set(CURLOPT_PROTOCOLS_STR, "https"),
            set(CURLOPT_NOSIGNAL, 1), set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_3)),
            set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)), set(CURLOPT_CONNECTTIMEOUT_MS, 10_000),
            set(CURLOPT_LOW_SPEED_LIMIT, 1),
            set(CURLOPT_LOW_SPEED_TIME, max(1, Int(request.silence.components.seconds))),
            server.pins.isEmpty || set(CURLOPT_PINNEDPUBLICKEY, server.pins.joined(separator: ";")),
            setAnchor(server.anchor), setMethod(request), setFields(request), shortenBuffer()
        else { return false }
        zeroReceivedPlaintext()
        let owner = Unmanaged.passUnretained(self).toOpaque()
        return saltern_curl_on_body(
            handle,
            { bytes, size, count, owner in
                CurlTransfer.from(owner)?.receivedBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
                    ?? 0
            }, owner) == CURLE_OK
            && saltern_curl_on_field(
                handle,
                { bytes, size, count, owner in
                    CurlTransfer.from(owner)?.receivedLine(
                        UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
                }, owner) == CURLE_OK
    }

    /// Makes OpenSSL zero decrypted bytes after libcurl has read them. Other TLS libraries have no such option.
    private func zeroReceivedPlaintext() {
        _ = saltern_curl_on_context(handle) { _, context, _ in
            if let context { saltern_SSL_CTX_cleanse_plaintext(OpaquePointer(context)) }
            return CURLE_OK
        }
    }

    private static func from(_ owner: UnsafeMutableRawPointer?) -> CurlTransfer? {
        owner.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
    }

    private func setAnchor(_ anchor: [UInt8]?) -> Bool {
        guard let anchor else { return true }
        return anchor.withUnsafeBytes { saltern_curl_set_anchor(handle, $0.baseAddress, $0.count) == CURLE_OK }
    }

    private func setMethod(_ request: HTTPRequest) -> Bool {
        if request.method == .head { return saltern_curl_set_long(handle, CURLOPT_NOBODY, 1) == CURLE_OK }
        guard saltern_curl_set_string(handle, CURLOPT_CUSTOMREQUEST, request.method.rawValue) == CURLE_OK else {
            return false
        }
        guard let body else { return true }
        if pace != nil, body.count > 0 { return sendInPieces(body.count) }
        return body.withUnsafeBytes { bytes in
            // libcurl needs an address for an empty body, too.
            var none: UInt8 = 0
            return withUnsafeMutablePointer(to: &none) { none in
                let start = bytes.baseAddress.map { UnsafeMutableRawPointer(mutating: $0) }
                return saltern_curl_set_long(handle, CURLOPT_POSTFIELDSIZE, bytes.count) == CURLE_OK
                    && saltern_curl_set_pointer(handle, CURLOPT_POSTFIELDS, start ?? UnsafeMutableRawPointer(none))
                        == CURLE_OK
            }
        }
    }

    /// Makes libcurl request each piece of the body.
    private func sendInPieces(_ byteCount: Int) -> Bool {
        saltern_curl_set_long(handle, CURLOPT_POST, 1) == CURLE_OK
            && saltern_curl_set_long(handle, CURLOPT_POSTFIELDSIZE, byteCount) == CURLE_OK
            && saltern_curl_on_sending(
                handle,
                { room, size, count, owner in
                    CurlTransfer.from(owner)?.nextPiece(
                        UnsafeMutableRawBufferPointer(start: room, count: size * count))
                        ?? Int(CURL_READFUNC_ABORT)
                },
                { owner, offset, origin in
                    CurlTransfer.from(owner)?.goBack(to: Int(offset), origin) ?? CURL_SEEKFUNC_FAIL
                }, Unmanaged.passUnretained(self).toOpaque()) == CURLE_OK
    }

    private func shortenBuffer() -> Bool {
        guard let pace else { return true }
        return saltern_curl_set_receive_buffer(handle, Int32(pace.receiveBuffer)) == CURLE_OK
    }

    private func setFields(_ request: HTTPRequest) -> Bool {
        for (name, value) in request.fields where !fields.append("\(name): \(value)") { return false }
        if let token = request.token {
            guard fields.append("Authorization: Bearer ", token) else { return false }
        }
        // Prevents the default value of libcurl.
        if request.body != nil, !request.fields.contains(where: { $0.name == "Content-Type" }) {
            guard fields.append("Content-Type:") else { return false }
        }
        return saltern_curl_set_fields(handle, fields.pointer) == CURLE_OK
    }

    // MARK: On the loop's thread

    /// Records the start of the transfer.
    func noteStart() {
        begin = .now
        pace?.note(headCount, .sending)
    }

    /// Returns true when the transfer may begin; see ``TransferPace/allows(_:_:)``.
    var mayStart: Bool { pace?.allows(self, .sending) ?? true }

    /// Copies the next bytes of the body. Returns their count, or libcurl's code for a pause.
    private func nextPiece(_ room: UnsafeMutableRawBufferPointer) -> Int {
        guard let body, let pace else { return Int(CURL_READFUNC_ABORT) }
        let count = min(room.count, TransferPace.piece, body.count - sentCount)
        guard count > 0 else { return 0 }
        guard pace.allows(self, .sending) else { return Int(CURL_READFUNC_PAUSE) }
        body.withUnsafeBytes { bytes in
            room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[sentCount..<sentCount + count]))
        }
        sentCount += count
        pace.note(count, .sending)
        return count
    }

    private func goBack(to offset: Int, _ origin: Int32) -> Int32 {
        guard origin == SEEK_SET, let body, (0...body.count).contains(offset) else { return CURL_SEEKFUNC_FAIL }
        sentCount = offset
        return CURL_SEEKFUNC_OK
    }

    /// True when the exchange has taken longer than its transferred bytes allow. The body of a stream has no such
    /// limit. Its head has one, and so has the body of an error reply.
    var isTooSlow: Bool {
        if isStream, let head, head.isSuccess { return false }
        return ContinuousClock.now - begin > allowance(Int64(saltern_curl_moved(handle)))
    }

    /// Receives a line of a head, or of the trailers after a body.
    private func receivedLine(_ line: UnsafeRawBufferPointer) -> Int {
        pace?.note(line.count, .receiving)
        guard budget.take(line.count) else {
            refusedReply = true
            return 0
        }
        let text = String(decoding: line, as: UTF8.self)
        if text.hasPrefix("HTTP/") {
            status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            receivedFields = []
        } else if let colon = text.firstIndex(of: ":") {
            let value = text[text.index(after: colon)...].trimmingSpace
            receivedFields.append((String(text[..<colon]), value))
        } else if text == "\r\n", status >= 200 {
            let head = HTTPReplyHead(status: status, fields: receivedFields)
            let waiter = waiting.withLock { waiting in
                waiting.head = head
                return isStream ? waiting.continuation.take() : nil
            }
            waiter?.resume(returning: .success(()))
        }
        return line.count
    }

    private func receivedBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        if let pace, !pace.allows(self, .receiving) { return Int(CURL_WRITEFUNC_PAUSE) }
        switch sink.receive(bytes) {
        case .taken:
            pace?.note(bytes.count, .receiving)
            return bytes.count
        case .paused: return Int(CURL_WRITEFUNC_PAUSE)
        case .refused:
            refusedReply = true
            return 0
        }
    }

    /// Converts libcurl's result.
    func outcome(of code: CURLcode) -> Result<Void, TransportError> {
        switch code {
        case CURLE_OK: .success(())
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: .failure(.pinMismatch)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR:
            .failure(.untrustedCertificate)
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
            CURLE_SSL_CONNECT_ERROR:
            .failure(.unreachable)
        case CURLE_OPERATION_TIMEDOUT: .failure(.timedOut)
        case CURLE_WRITE_ERROR where refusedReply, CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL,
            CURLE_BAD_CONTENT_ENCODING, CURLE_FILESIZE_EXCEEDED:
            .failure(.unacceptableReply)
        case CURLE_URL_MALFORMAT: .failure(.configuration(.request))
        case CURLE_SSL_ENGINE_NOTFOUND, CURLE_NOT_BUILT_IN: .failure(.configuration(.system))
        default: .failure(.connectionLost)
        }
    }

    // MARK: Access of others

    /// The reply's head, after it has arrived.
    var head: HTTPReplyHead? { waiting.withLock { $0.head } }

    /// True when the transfer has ended.
    var hasEnded: Bool { waiting.withLock { $0.hasEnded } }

    /// Registers the waiting caller, once, before the start.
    func wait(with continuation: CheckedContinuation<Result<Void, TransportError>, Never>) {
        let hasEnded = waiting.withLock { waiting in
            if !waiting.hasEnded { waiting.continuation = continuation }
            return waiting.hasEnded
        }
        if hasEnded { continuation.resume(returning: .failure(.cancelled)) }
    }

    /// Completes the waiting caller and the reader. A second call does nothing.
    func end(_ outcome: Result<Void, TransportError>) {
        let (isFirst, waiter) = waiting.withLock { waiting in
            let isFirst = !waiting.hasEnded
            waiting.hasEnded = true
            return (isFirst, waiting.continuation.take())
        }
        guard isFirst else { return }
        sink.finish(outcome)
        waiter?.resume(returning: outcome)
    }
}

/// Owns a `curl_slist *`.
private struct FieldList: ~Copyable {
    private(set) var pointer: UnsafeMutablePointer<curl_slist>?

    /// Adds a line, which may end with a secret. libcurl copies it into memory that it zeroes (``CurlLoop``).
    /// - Returns: False when the line has a control character or there is no memory. The list is then unchanged.
    mutating func append(_ line: String, _ secret: SecureBytes = SecureBytes(copying: [UInt8]())) -> Bool {
        let count = line.utf8.count
        let whole = SecureBytes(count: count + secret.count + 1) { whole in
            whole.copyBytes(from: line.utf8)
            secret.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: whole[count...]).copyMemory(from: $0) }
        }
        let longer = whole.withUnsafeBytes { bytes in
            bytes.dropLast().allSatisfy { $0 >= 0x20 && $0 != 0x7f }
                ? curl_slist_append(pointer, bytes.assumingMemoryBound(to: CChar.self).baseAddress) : nil
        }
        guard let longer else { return false }
        pointer = longer
        return true
    }

    deinit { curl_slist_free_all(pointer) }
}

extension Substring {
    fileprivate var trimmingSpace: String {
        var bytes = utf8[...]
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 || last == 0x0d || last == 0x0a {
            bytes.removeLast()
        }
        return String(Substring(bytes))
    }
}
