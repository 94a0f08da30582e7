/// What body a route takes.
public enum BodyRule: Sendable, Hashable {
    /// No body at all.
    case none
    /// A JSON document of at most `limit` bytes.
    case json(limit: Int)

    /// Checks a head against the rule, before any byte of the body is read.
    ///
    /// - Returns: The longest body in bytes to read; 0 when there is none.
    /// - Throws: 400 `unexpected_body` or `missing_body`, 413 `body_too_large`, 415 `unsupported_media_type` or
    ///   `unsupported_content_encoding`.
    public func bodyLimit(for head: RequestHead) throws(Problem) -> Int {
        switch self {
        case .none:
            guard head.framing == .none else {
                throw Problem(.badRequest, "unexpected_body", detail: "This route takes no body.")
            }
            return 0
        case .json(let limit):
            guard head.framing != .none else {
                throw Problem(.badRequest, "missing_body", detail: "This route needs a JSON body.")
            }
            let isJSON = head.fields.withValue(named: "content-type", Self.isJSON) ?? false
            guard isJSON else {
                throw Problem(
                    .unsupportedMediaType, "unsupported_media_type",
                    detail: "The body must be sent as application/json in UTF-8.",
                    responseFields: ["Accept": "application/json"])
            }
            let isPlain =
                head.fields.withValue(named: "content-encoding") { ASCII.equalsIgnoringCase($0, "identity") } ?? true
            guard isPlain else {
                throw Problem(
                    .unsupportedMediaType, "unsupported_content_encoding", detail: "The body must not be compressed.",
                    responseFields: ["Accept-Encoding": "identity"])
            }
            if case .length(let length) = head.framing, length > limit {
                throw Refusal.bodyTooLarge(limit: limit).problem
            }
            return limit
        }
    }

    /// Whether a `Content-Type` is `application/json` with no parameter but `charset=utf-8`.
    private static func isJSON(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        let parts = value.split(separator: ASCII.semicolon, omittingEmptySubsequences: false)
        guard let mediaType = parts.first, parts.count <= 2,
            ASCII.equalsIgnoringCase(ASCII.trimmed(UnsafeBufferPointer(rebasing: mediaType)), "application/json")
        else { return false }
        guard parts.count == 2 else { return true }
        let parameter = ASCII.trimmed(UnsafeBufferPointer(rebasing: parts[1]))
        return ASCII.equalsIgnoringCase(parameter, "charset=utf-8")
            || ASCII.equalsIgnoringCase(parameter, "charset=\"utf-8\"")
    }
}
