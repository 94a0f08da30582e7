/// The bodies that a route accepts.
public enum BodyRule: Sendable, Hashable {
    /// No body at all.
    case none
    /// A JSON document of at most `limit` bytes and `values` values.
    case json(limit: Int, values: Int = JSONParser.standardValueLimit)
    /// Any bytes, at most `limit`.
    case bytes(limit: Int)
    /// A JSON document of at most `json` bytes or any bytes, at most `bytes`, depending on the `Content-Type`.
    case jsonOrBytes(json: Int, bytes: Int)

    /// Checks a head against the rule, before any byte of the body is read.
    ///
    /// A chunked body may be empty (RFC 9112 §6.3), so all rules admit one of any type. Without content it equals no
    /// body. See ``AdmittedBody`` and ``refusalOfContent(_:)``.
    ///
    /// - Returns: The body to read.
    /// - Throws: 400 `unexpected_body` or `missing_body`, 413 `body_too_large`, 415 `unsupported_media_type` or
    ///   `unsupported_content_encoding`.
    public func admit(_ head: RequestHead) throws(Problem) -> AdmittedBody {
        if self == .none {
            if case .length = head.framing { throw Refusal.unexpectedBody.problem }
            return AdmittedBody(type: .none, limit: 0)
        }
        guard head.framing != .none else { throw missingBody }
        do throws(Problem) {
            return try admitContent(head)
        } catch {
            guard head.framing == .chunked else { throw error }
            return AdmittedBody(type: .none, limit: 0)
        }
    }

    /// Returns the problem of content in a body that was admitted without content (``BodyType/none``).
    public func refusalOfContent(_ head: RequestHead) -> Problem {
        if self != .none {
            do throws(Problem) { _ = try admitContent(head) } catch { return error }
        }
        return Refusal.unexpectedBody.problem
    }

    private func admitContent(_ head: RequestHead) throws(Problem) -> AdmittedBody {
        let limits: Limits
        switch self {
        case .none: limits = Limits()
        case .json(let limit, let values): limits = Limits(json: limit, values: values)
        case .bytes(let limit): limits = Limits(bytes: limit)
        case .jsonOrBytes(let json, let bytes): limits = Limits(json: json, bytes: bytes)
        }
        let body = try Self.type(of: head, limits)
        guard head.fields.withValue(named: "content-encoding", Self.isIdentity) ?? true else {
            throw Problem(
                .unsupportedMediaType, "unsupported_content_encoding", detail: "The body must not be compressed.",
                responseFields: ["Accept-Encoding": "identity"])
        }
        if case .length(let length) = head.framing, length > body.limit {
            throw Refusal.bodyTooLarge(limit: body.limit).problem
        }
        return body
    }

    /// Returns whether a list of codings, possibly empty, leaves the content unchanged (RFC 9110 §8.4).
    private static func isIdentity(_ codings: UnsafeBufferPointer<UInt8>) -> Bool {
        var elements = FieldParts(of: codings, separator: ASCII.comma)
        while let element = elements.next() {
            guard element.isEmpty || ASCII.equalsIgnoringCase(element, "identity") else { return false }
        }
        return true
    }

    /// 400 `missing_body`: the reply to a request without content when the rule requires it.
    public var missingBody: Problem {
        let detail =
            switch self {
            case .none, .json: "This route needs a JSON body."
            case .bytes, .jsonOrBytes: "This route needs a body."
            }
        return Problem(.badRequest, "missing_body", detail: detail)
    }

    /// The maximum length of a body of any request, in bytes.
    public var longest: Int {
        switch self {
        case .none: 0
        case .json(let limit, _), .bytes(let limit): limit
        case .jsonOrBytes(let json, let bytes): max(json, bytes)
        }
    }

    /// Returns the maximum length of the body in bytes; 0 without one.
    /// - Throws: Errors of ``admit(_:)``.
    public func bodyLimit(for head: RequestHead) throws(Problem) -> Int { try admit(head).limit }

    private struct Limits {
        var json: Int?
        var values = JSONParser.standardValueLimit
        var bytes: Int?
    }

    private static func type(
        of head: RequestHead, _ limits: Limits
    ) throws(Problem) -> AdmittedBody {
        let type = head.fields.withValue(named: "content-type", BodyType.init(contentType:))
        if let limit = limits.json, type == .json {
            return AdmittedBody(type: .json, limit: limit, valueLimit: limits.values)
        }
        if let limit = limits.bytes, type == .bytes {
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
}

/// The body that a request may send.
///
/// A body of the type ``BodyType/none`` has no content: its first byte is rejected. A chunked body of another type that
/// ends without content causes ``BodyRule/missingBody``.
public struct AdmittedBody: Sendable, Hashable {
    public let type: BodyType
    /// The maximum length in bytes; 0 without a body.
    public let limit: Int
    /// The maximum number of values in a JSON body.
    public let valueLimit: Int

    public init(type: BodyType, limit: Int, valueLimit: Int = JSONParser.standardValueLimit) {
        self.type = type
        self.limit = limit
        self.valueLimit = valueLimit
    }

    /// The memory of the body at its peak.
    public var memory: MemoryFactor {
        switch type {
        case .none: .none
        case .json: .json
        case .bytes: .bytes
        }
    }
}

/// The type of a request's body.
public enum BodyType: Sendable, Hashable {
    case none
    case json
    /// `application/octet-stream`.
    case bytes
}

extension BodyType {
    /// Reads a `Content-Type`.
    ///
    /// Parameters are ignored (RFC 8259 §11), except that a JSON body in another charset than UTF-8 is unsupported.
    /// - Returns: The type. ``none`` for a media type that no route takes, and for a malformed one.
    init(contentType value: UnsafeBufferPointer<UInt8>) {
        var isUTF8 = true
        let type = MediaType(value) { parameter in
            if parameter.isNamed("charset") { isUTF8 = isUTF8 && Self.isUTF8(parameter.value) }
            return true
        }
        if let type, type.isNamed("application/json"), isUTF8 {
            self = .json
        } else if let type, type.isNamed("application/octet-stream") {
            self = .bytes
        } else {
            self = .none
        }
    }

    /// Returns whether a charset is UTF-8, by its registered name or without the hyphen.
    private static func isUTF8(_ charset: [UInt8]) -> Bool {
        charset.withUnsafeBufferPointer {
            ASCII.equalsIgnoringCase($0, "utf-8") || ASCII.equalsIgnoringCase($0, "utf8")
        }
    }
}
