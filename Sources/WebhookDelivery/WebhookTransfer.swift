internal import CCurl
internal import SalternServer
internal import Synchronization

/// Carries one webhook with its `CURL *`.
///
/// `@unchecked Sendable` is safe: only the creator uses it before the post, and only the thread of
/// ``CurlWebhookClient`` afterwards. A lock protects the continuation.
final class WebhookTransfer: @unchecked Sendable {
    let handle: UnsafeMutableRawPointer
    private var fields: UnsafeMutablePointer<curl_slist>?
    // libcurl reads the body in place until the transfer has ended.
    private let body: UnsafeMutableBufferPointer<UInt8>
    private var receivedCount = 0
    private let waiting = Mutex(Waiting())

    private struct Waiting {
        var continuation: CheckedContinuation<WebhookOutcome, Never>?
        var outcome: WebhookOutcome?
    }

    /// - Parameter authorities: Certificates in PEM that replace the system's. Nil uses the system's.
    /// - Returns: Nil if libcurl rejects an option or a field has a control character.
    init?(_ request: WebhookRequest, authorities: [UInt8]?) {
        guard let handle = curl_easy_init() else { return nil }
        self.handle = handle
        body = .allocate(capacity: max(request.body.count, 1))
        _ = body.initialize(from: request.body)
        // From here on `deinit` frees everything, even if the configuration fails.
        guard configure(request, authorities) else { return nil }
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(fields)
        body.deallocate()
    }

    private func set(_ option: CURLoption, _ value: Int) -> Bool {
        saltern_curl_set_long(handle, option, value) == CURLE_OK
    }

    private func set(_ option: CURLoption, _ value: String) -> Bool {
        saltern_curl_set_string(handle, option, value) == CURLE_OK
    }

    private func configure(_ request: WebhookRequest, _ authorities: [UInt8]?) -> Bool {
        let milliseconds = Int(WebhookRequest.timeLimit / .milliseconds(1))
        guard set(CURLOPT_URL, request.url), set(CURLOPT_PROTOCOLS_STR, "https"), set(CURLOPT_NOSIGNAL, 1),
            // A name that does not resolve in time must not hold up the thread of all transfers: libcurl then detaches
            // the resolver's thread instead of joining it.
            set(CURLOPT_QUICK_EXIT, 1),
            set(CURLOPT_PROXY, ""), set(CURLOPT_NOPROXY, "*"), set(CURLOPT_FOLLOWLOCATION, 0),
            set(CURLOPT_SSL_VERIFYPEER, 1), set(CURLOPT_SSL_VERIFYHOST, 2),
            set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)),
            set(CURLOPT_TIMEOUT_MS, milliseconds), set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds / 2),
            set(CURLOPT_POST, 1), set(CURLOPT_POSTFIELDSIZE, request.body.count),
            saltern_curl_set_pointer(handle, CURLOPT_POSTFIELDS, body.baseAddress.map { UnsafeMutableRawPointer($0) })
                == CURLE_OK
        else { return false }
        if let authorities {
            guard
                authorities.withUnsafeBytes({ saltern_curl_set_anchor(handle, $0.baseAddress, $0.count) }) == CURLE_OK,
                set(CURLOPT_CAPATH, "")
            else { return false }
        }
        // Without the empty field libcurl waits for "100 Continue" before longer bodies.
        for (name, value) in request.fields + [("Expect", "")] where !append("\(name): \(value)") { return false }
        guard saltern_curl_set_fields(handle, fields) == CURLE_OK else { return false }
        let owner = Unmanaged.passUnretained(self).toOpaque()
        let received: saltern_curl_write = { _, size, count, owner in
            guard let owner else { return 0 }
            return Unmanaged<WebhookTransfer>.fromOpaque(owner).takeUnretainedValue().receive(size * count)
        }
        return saltern_curl_on_body(handle, received, owner) == CURLE_OK
            && saltern_curl_on_field(handle, received, owner) == CURLE_OK
    }

    private func append(_ line: String) -> Bool {
        guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), let longer = curl_slist_append(fields, line) else {
            return false
        }
        fields = longer
        return true
    }

    // MARK: On the thread

    /// Counts and discards bytes of the answer. Returns 0 if there are too many, which ends the transfer.
    private func receive(_ count: Int) -> Int {
        receivedCount += count
        return receivedCount <= WebhookRequest.answerLimit ? count : 0
    }

    /// Converts libcurl's result.
    func outcome(of code: CURLcode) -> WebhookOutcome {
        switch code {
        case CURLE_OK:
            var status = 0
            return saltern_curl_status(handle, &status) == CURLE_OK && status > 0
                ? .status(status) : .failed(.unacceptable)
        case CURLE_OPERATION_TIMEDOUT: return .failed(.timedOut)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR:
            return .failed(.untrusted)
        case CURLE_WRITE_ERROR, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_UNSUPPORTED_PROTOCOL,
            CURLE_URL_MALFORMAT, CURLE_FILESIZE_EXCEEDED:
            return .failed(.unacceptable)
        default: return .failed(.unreachable)
        }
    }

    // MARK: From any thread

    var hasEnded: Bool { waiting.withLock { $0.outcome != nil } }

    /// Registers the waiting task.
    func wait(with continuation: CheckedContinuation<WebhookOutcome, Never>) {
        let outcome = waiting.withLock { waiting in
            if waiting.outcome == nil { waiting.continuation = continuation }
            return waiting.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
    }

    /// Resumes the waiting task. Only the first outcome counts.
    func end(_ outcome: WebhookOutcome) {
        let continuation = waiting.withLock { waiting in
            guard waiting.outcome == nil else { return nil as CheckedContinuation<WebhookOutcome, Never>? }
            waiting.outcome = outcome
            return waiting.continuation.take()
        }
        continuation?.resume(returning: outcome)
    }
}
