public import HTTPCore

/// The reason for which bytes are no acceptable request. It is final for the connection, because the start of the next
/// request is unknown.
public enum HTTP1Error: Error, Hashable, Sendable {
    case requestLineTooLong(limit: Int)
    case headerTooLarge(limit: Int)
    case tooManyFields(limit: Int)
    case bodyTooLarge(limit: Int)
    case versionNotSupported
    case expectationFailed
    case transferCodingNotImplemented
    case syntax(Syntax)

    /// Violations of RFC 9112 or of this server's stricter rules. The raw value is the problem's code.
    public enum Syntax: String, Sendable, CaseIterable {
        case malformedRequestLine = "malformed_request_line"
        case malformedMethod = "malformed_method"
        case malformedTarget = "malformed_target"
        case unsupportedTargetForm = "unsupported_target_form"
        case bareLineFeed = "bare_line_feed"
        case bareCarriageReturn = "bare_carriage_return"
        case foldedField = "folded_field"
        case malformedFieldName = "malformed_field_name"
        case malformedFieldValue = "malformed_field_value"
        case spaceBeforeColon = "space_before_colon"
        case missingHost = "missing_host"
        case duplicateHost = "duplicate_host"
        case malformedHost = "malformed_host"
        case malformedContentLength = "malformed_content_length"
        case duplicateContentLength = "duplicate_content_length"
        case conflictingFraming = "conflicting_framing"
        case malformedTransferEncoding = "malformed_transfer_encoding"
        case malformedConnection = "malformed_connection"
        case malformedChunk = "malformed_chunk"
        case chunkTooLarge = "chunk_too_large"
        case forbiddenTrailer = "forbidden_trailer"
    }
}

extension HTTP1Error {
    /// The same as a refusal, for which the application has a reply.
    public var refusal: Refusal {
        switch self {
        case .requestLineTooLong(let limit): .uriTooLong(limit: limit)
        case .headerTooLarge(let limit), .tooManyFields(let limit): .headerTooLarge(limit: limit)
        // A route without a body admits a chunked one, which may be empty.
        case .bodyTooLarge(limit: 0): .unexpectedBody
        case .bodyTooLarge(let limit): .bodyTooLarge(limit: limit)
        case .versionNotSupported: .versionNotSupported
        case .expectationFailed: .expectationFailed
        case .transferCodingNotImplemented: .transferCodingNotImplemented
        case .syntax(let syntax): .badRequest(code: syntax.rawValue, detail: syntax.detail)
        }
    }
}

extension HTTP1Error.Syntax {
    /// Describes the violation.
    var detail: String {
        switch self {
        case .malformedRequestLine: "The request line is not a method, a target and a version with one space between."
        case .malformedMethod: "The method is not a token, or too long."
        case .malformedTarget: "The request target contains invalid characters."
        case .unsupportedTargetForm: "The request target must be a path, or an http or https URI."
        case .bareLineFeed: "A line ends with LF alone."
        case .bareCarriageReturn: "A CR is not followed by LF."
        case .foldedField: "A field continues on the next line."
        case .malformedFieldName: "A field name is not a token."
        case .malformedFieldValue: "A field value contains control characters."
        case .spaceBeforeColon: "There is white space between a field name and its colon."
        case .missingHost: "The Host field is missing."
        case .duplicateHost: "There is more than one Host field."
        case .malformedHost: "The Host field is not a host with an optional port."
        case .malformedContentLength: "Content-Length is not a number of bytes."
        case .duplicateContentLength: "There is more than one Content-Length."
        case .conflictingFraming: "The length of the body is ambiguous."
        case .malformedTransferEncoding: "Transfer-Encoding is not one coding."
        case .malformedConnection: "The Connection field is not a list of tokens."
        case .malformedChunk: "A chunk of the body is malformed."
        case .chunkTooLarge: "A chunk of the body is too large."
        case .forbiddenTrailer: "A trailer field must not control framing or routing."
        }
    }
}
