/// Why a call of the API failed.
public enum APIError: Error, Sendable {
    /// The server refused it.
    case problem(Problem)
    /// There was no reply.
    case transport(TransportError)
    /// There was a reply that this client does not understand: the server is hostile, broken or something else.
    case unexpectedReply

    /// The stable code of the server's refusal.
    public var code: Problem.Code? {
        if case .problem(let problem) = self { problem.code } else { nil }
    }

    /// Whether the same may be sent again, later, and succeed.
    public var isPassing: Bool {
        switch self {
        case .problem(let problem): [408, 429, 500, 502, 503, 504].contains(problem.status)
        case .transport(let error): error.isPassing
        case .unexpectedReply: false
        }
    }

    /// Whether the server has refused it, and has done nothing.
    var isRefusal: Bool {
        if case .problem = self { !isPassing } else { false }
    }

    /// Whether the server may have carried it out all the same.
    var mayBeDone: Bool {
        switch self {
        case .problem(let problem): isPassing && problem.status != 429
        case .transport(.unreachable), .transport(.pinMismatch), .transport(.untrustedCertificate),
            .transport(.configuration):
            false
        case .transport, .unexpectedReply: true
        }
    }

    /// True when a request may have been too long for the line or for the server's time limit.
    var isAboutPace: Bool {
        switch self {
        case .transport(.timedOut), .transport(.connectionLost): true
        case .problem(let problem): [408, 413, 503, 504].contains(problem.status)
        case .transport, .unexpectedReply: false
        }
    }

    /// Whether it is about who answers, which a person has to see to.
    public var isAboutTrust: Bool {
        switch self {
        case .transport(let error): error.isAboutTrust
        case .problem, .unexpectedReply: false
        }
    }

    /// How long the server asks to be left alone.
    public var retryAfter: Duration? {
        if case .problem(let problem) = self { problem.retryAfter } else { nil }
    }
}

/// What the server says of a refusal (RFC 9457).
public struct Problem: Decodable, Sendable {
    /// The stable, machine-readable code. More may be added: decide by ``Problem/status`` for one that is not known.
    public struct Code: RawRepresentable, Hashable, Sendable, Decodable, ExpressibleByStringLiteral {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }
        public init(from decoder: any Decoder) throws {
            rawValue = try decoder.singleValueContainer().decode(String.self)
        }
    }

    /// An operation of a batch that failed.
    public struct Conflict: Decodable, Sendable {
        public let index: Int
        public let id: ItemID
        public let code: Code
        /// The item's present revision; nil when there is none.
        public let revision: Revision?
    }

    public let status: Int
    public let code: Code
    public let title: String
    public let detail: String?
    public let requestId: String?
    /// Which member is meant.
    public let field: String?
    /// For `userid_not_canonical`: the form that the userid would take.
    public let canonical: String?
    /// For `quota_exceeded`: how much the plan allows, and how much there is.
    public let allowed: Int64?
    public let used: Int64?
    /// For `batch_conflict`.
    public let conflicts: [Conflict]?
    /// For `precondition_failed`: the item as it is; nil when there is none.
    public let current: ItemState?
    /// From the field `Retry-After`.
    public internal(set) var retryAfter: Duration?

    private enum CodingKeys: CodingKey {
        case status, code, title, detail, requestId, field, canonical, allowed, used, conflicts, current
    }
}

extension Problem {
    /// This device has no session; the server was not asked.
    static let sessionMissing = Problem(
        status: 401, code: .unauthenticated, title: "there is no session on this device", detail: nil, requestId: nil,
        field: nil, canonical: nil, allowed: nil, used: nil, conflicts: nil, current: nil)
}

extension Problem.Code {
    public static let unauthenticated: Self = "unauthenticated"
    public static let wrongCredentials: Self = "wrong_credentials"
    public static let totpRequired: Self = "totp_required"
    public static let wrongTOTP: Self = "wrong_totp"
    public static let tooManyAttempts: Self = "too_many_attempts"
    public static let useridTaken: Self = "userid_taken"
    public static let useridNotCanonical: Self = "userid_not_canonical"
    public static let preconditionFailed: Self = "precondition_failed"
    public static let malformedCursor: Self = "malformed_cursor"
    public static let cursorExpired: Self = "cursor_expired"
    public static let batchConflict: Self = "batch_conflict"
    public static let keyringChanged: Self = "keyring_changed"
    public static let rotationIncomplete: Self = "rotation_incomplete"
    public static let rotationCommitted: Self = "rotation_committed"
    public static let batchTooLarge: Self = "batch_too_large"
    public static let quotaExceeded: Self = "quota_exceeded"
    public static let notFound: Self = "not_found"
    public static let gone: Self = "gone"
}
