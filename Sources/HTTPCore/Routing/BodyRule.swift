/// What body a route takes.
public enum BodyRule: Sendable, Hashable {
    /// No body at all.
    case none
    /// A JSON document of at most `limit` bytes and `values` values.
    case json(limit: Int, values: Int = JSONParser.standardValueLimit)
    /// At most `limit` bytes of whatever kind.
    case bytes(limit: Int)
    /// Either a JSON document of at most `json` bytes or at most `bytes` bytes of whatever kind, by the `Content-Type`.
    case jsonOrBytes(json: Int, bytes: Int)

    /// Checks a head against the rule, before any byte of the body is read.
    ///
    /// - Returns: What body to read.
    /// - Throws: 400 `unexpected_body` or `missing_body`, 413 `body_too_large`, 415 `unsupported_media_type` or
    ///   `unsupported_content_encoding`.
    public func admit(_ head: RequestHead) throws(Problem) -> AdmittedBody {
        let limits: Limits
        switch self {
        case .none:
            guard head.framing == .none else {
                throw Problem(.badRequest, "unexpected_body", detail: "This route takes no body.")
            }
            return AdmittedBody(type: .none, limit: 0)
        case .json(let limit, let values): limits = Limits(json: limit, values: values)
        case .bytes(let limit): limits = Limits(bytes: limit)
        case .jsonOrBytes(let json, let bytes): limits = Limits(json: json, bytes: bytes)
        }
        guard head.framing != .none else {
            let detail = limits.bytes == nil ? "This route needs a JSON body." : "This route needs a body."
            throw Problem(.badRequest, "missing_body", detail: detail)
        }
        let body = try Self.type(of: head, limits)
        let isPlain =
            head.fields.withValue(named: "content-encoding") { ASCII.equalsIgnoringCase($0, "identity") } ?? true
        guard isPlain else {
            throw Problem(
                .unsupportedMediaType, "unsupported_content_encoding", detail: "The body must not be compressed.",
                responseFields: ["Accept-Encoding": "identity"])
        }
        if case .length(let length) = head.framing, length > body.limit {
            throw Refusal.bodyTooLarge(limit: body.limit).problem
        }
        return body
    }

    /// The longest body that any request can have, in bytes.
    public var longest: Int {
        switch self {
        case .none: 0
        case .json(let limit, _), .bytes(let limit): limit
        case .jsonOrBytes(let json, let bytes): max(json, bytes)
        }
    }

    /// The longest body in bytes to read; 0 when there is none.
    /// - Throws: As ``admit(_:)``.
    public func bodyLimit(for head: RequestHead) throws(Problem) -> Int { try admit(head).limit }

    private struct Limits {
        var json: Int?
        var values = JSONParser.standardValueLimit
        var bytes: Int?
    }

    private static func type(
        of head: RequestHead, _ limits: Limits
    ) throws(Problem) -> AdmittedBody {
        if let limit = limits.json, head.fields.withValue(named: "content-type", isJSON) ?? false {
            return AdmittedBody(type: .json, limit: limit, valueLimit: limits.values)
        }
        if let limit = limits.bytes, head.fields.withValue(named: "content-type", isBytes) ?? false {
            return AdmittedBody(type: .bytes, limit: limit)
        }
        let json = limits.json.map { _ in (type: "application/json", said: "application/json in UTF-8") }
        let bytes = limits.bytes.map { _ in (type: "application/octet-stream", said: "application/octet-stream") }
        let forms = [json, bytes].compactMap(\.self)
        throw Problem(
            .unsupportedMediaType, "unsupported_media_type",
            detail: "The body must be sent as \(forms.map(\.said).joined(separator: " or as ")).",
            responseFields: ["Accept": forms.map(\.type).joined(separator: ", ")])
    }

    /// Whether a `Content-Type` is `application/octet-stream`, which has no parameters.
    private static func isBytes(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        ASCII.equalsIgnoringCase(value, "application/octet-stream")
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

/// The body that a request may send.
public struct AdmittedBody: Sendable, Hashable {
    public let type: BodyType
    /// The longest in bytes; 0 when there is none.
    public let limit: Int
    /// How many values it may have when it is JSON.
    public let valueLimit: Int

    public init(type: BodyType, limit: Int, valueLimit: Int = JSONParser.standardValueLimit) {
        self.type = type
        self.limit = limit
        self.valueLimit = valueLimit
    }

    /// What a body takes of memory at its peak.
    public var memory: MemoryFactor {
        switch type {
        case .none: .none
        case .json: .json
        case .bytes: .bytes
        }
    }
}

/// What a request's body is.
public enum BodyType: Sendable, Hashable {
    case none
    case json
    /// `application/octet-stream`.
    case bytes
}
