/// The reason for which a connection rejects a request before or during its processing.
public enum Refusal: Error, Sendable, Equatable {
    /// 400: the bytes are not an HTTP request. `code` is the parser's stable reason.
    case badRequest(code: String, detail: String)
    /// 408: the header block did not arrive in time.
    case headerTimeout
    /// 408: the body did not arrive in time.
    case bodyTimeout
    /// 400: the route takes no body, and the request has one.
    case unexpectedBody
    /// 413: the body is longer than the route's limit in bytes.
    case bodyTooLarge(limit: Int)
    /// 414: the request line is longer than the limit in bytes.
    case uriTooLong(limit: Int)
    /// 417: `Expect` has another value than `100-continue`.
    case expectationFailed
    /// 431: the header block has more bytes or more fields than the limit.
    case headerTooLarge(limit: Int)
    /// 501: the transfer coding is not `chunked`.
    case transferCodingNotImplemented
    /// 503: the handler exceeded its time limit.
    case handlerTimeout
    /// 503: the server is overloaded. The client should retry after so many seconds.
    case overloaded(retryAfter: Int)
    /// 505: the version is neither HTTP/1.1 nor HTTP/1.0.
    case versionNotSupported
}

extension Refusal: ProblemConvertible {
    public var problem: Problem {
        switch self {
        case .badRequest(let code, let detail):
            Problem(.badRequest, code, detail: detail)
        case .headerTimeout:
            Problem(.requestTimeout, "header_timeout", detail: "The header block did not arrive in time.")
        case .bodyTimeout:
            Problem(.requestTimeout, "body_timeout", detail: "The body did not arrive in time.")
        case .unexpectedBody:
            Problem(.badRequest, "unexpected_body", detail: "This route accepts no body.")
        case .bodyTooLarge(let limit):
            Problem(.contentTooLarge, "body_too_large", detail: "The body is too long for this route.", limit: limit)
        case .uriTooLong(let limit):
            Problem(.uriTooLong, "uri_too_long", detail: "The request line is too long.", limit: limit)
        case .expectationFailed:
            Problem(.expectationFailed, "expectation_failed", detail: "Expect must be 100-continue.")
        case .headerTooLarge(let limit):
            Problem(
                .requestHeaderFieldsTooLarge, "header_too_large", detail: "The header block is too large.", limit: limit
            )
        case .transferCodingNotImplemented:
            Problem(
                .notImplemented, "transfer_coding_not_implemented", detail: "Transfer-Encoding must be chunked."
            )
        case .handlerTimeout:
            Problem(
                .serviceUnavailable, "handler_timeout", detail: "The reply took too long.",
                responseFields: ["Retry-After": "1"])
        case .overloaded(let retryAfter):
            Problem(
                .serviceUnavailable, "overloaded", detail: "The server is overloaded. Try again after Retry-After.",
                responseFields: ["Retry-After": String(retryAfter)])
        case .versionNotSupported:
            Problem(.httpVersionNotSupported, "version_not_supported", detail: "Use HTTP/1.1.")
        }
    }
}
