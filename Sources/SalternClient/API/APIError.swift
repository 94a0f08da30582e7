/// The reason for which a call of the API failed.
public enum APIError: Error, Sendable {
    /// The server rejected the request.
    case problem(Problem)
    /// No reply arrived.
    case transport(TransportError)
    /// The reply is malformed or unexpected: the server is hostile, broken or another service.
    case unexpectedReply

    /// The stable code of the problem; nil for other errors.
    public var code: Problem.Code? {
        if case .problem(let problem) = self { problem.code } else { nil }
    }

    /// True when the same request can succeed later.
    public var isPassing: Bool {
        switch self {
        case .problem(let problem): [408, 429, 500, 502, 503, 504].contains(problem.status)
        case .transport(let error): error.isPassing
        case .unexpectedReply: false
        }
    }

    /// True when the server rejected the request and changed nothing.
    var isRefusal: Bool {
        if case .problem = self { !isPassing } else { false }
    }

    /// True when the server may have carried out the request.
    var mayBeDone: Bool {
        switch self {
        case .problem(let problem): isPassing && problem.status != 429
        case .transport(.unreachable), .transport(.pinMismatch), .transport(.untrustedCertificate),
            .transport(.configuration):
            false
        case .transport, .unexpectedReply: true
        }
    }

    /// True when a reply may have been too long for the connection.
    var isOfSlowLine: Bool {
        switch self {
        case .transport(.timedOut), .transport(.connectionLost): true
        case .problem(let problem): [408, 504].contains(problem.status)
        case .transport, .unexpectedReply: false
        }
    }

    /// True when this device has cancelled the call.
    var isCancelled: Bool {
        if case .transport(.cancelled) = self { true } else { false }
    }

    /// True when a request may have been too long for the connection or for the server's time limit.
    var isAboutPace: Bool {
        if case .problem(let problem) = self, [413, 503].contains(problem.status) { true } else { isOfSlowLine }
    }

    /// True for a wrong key, an untrusted certificate or a malformed configuration. Waiting does not help: show the
    /// error.
    public var isAboutTrust: Bool {
        switch self {
        case .transport(let error): error.isAboutTrust
        case .problem, .unexpectedReply: false
        }
    }

    /// The server's minimum wait before the next request; nil when it names none.
    public var retryAfter: Duration? {
        if case .problem(let problem) = self { problem.retryAfter } else { nil }
    }
}

/// The server's description of an error (RFC 9457).
public struct Problem: Decodable, Sendable {
    /// The stable, machine-readable code. Further codes can be added: for an unlisted one, decide by
    /// ``Problem/status``.
    public struct Code: RawRepresentable, Hashable, Sendable, Decodable, ExpressibleByStringLiteral {
        /// The code as the server sends it, such as `wrong_credentials`.
        public let rawValue: String

        /// Creates a code from the server's text.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Creates a code from a literal in source code.
        public init(stringLiteral value: String) { rawValue = value }
        public init(from decoder: any Decoder) throws {
            rawValue = try decoder.singleValueContainer().decode(String.self)
        }
    }

    /// An operation of a batch that failed.
    public struct Conflict: Decodable, Sendable {
        /// The position of the operation in the batch, from 0.
        public let index: Int
        /// The item that the operation names.
        public let id: ItemID
        /// `precondition_failed`, or `not_found` for the deletion of an item that does not exist.
        public let code: Code
        /// The item's present revision; nil when there is none.
        public let revision: Revision?
    }

    /// The status code of the reply (RFC 9110 section 15).
    public let status: Int
    /// The stable code by which programs decide.
    public let code: Code
    /// The reason phrase of the status, in English.
    public let title: String
    /// An explanation with advice, in English. The text can change between versions of the server.
    public let detail: String?
    /// The id of the request in the server's log.
    public let requestId: String?
    /// The affected member or parameter, such as `kdf.iterations`; nil when there is none.
    public let field: String?
    /// For `userid_not_canonical`: the userid's canonical form.
    public let canonical: String?
    /// For `quota_exceeded`: the plan's limit, in the limit's unit.
    public let allowed: Int64?
    /// For `quota_exceeded`: the used part of the limit, in the limit's unit.
    public let used: Int64?
    /// For `batch_conflict`: the operations that failed.
    public let conflicts: [Conflict]?
    /// For `precondition_failed`: the present item; nil when there is none.
    public let current: ItemState?
    /// For `second_factor_required`: the second factors of the account, `totp` or `passkey`.
    public internal(set) var factors: [String]?
    /// For `second_factor_required`: the options with which an authenticator answers.
    public internal(set) var publicKey: PasskeyRequestOptions?
    /// For `passkey_boxes_required`: the credential ids of the passkeys that unlock the keyring.
    public internal(set) var passkeys: [Base64URLBytes]?
    /// For `entry_refused`: the rule of the log that rejects the entry.
    public internal(set) var reason: String?
    /// For `membership_moved`: the entries of the log that the request does not continue.
    public internal(set) var entries: [Base64Bytes]?
    /// From the field `Retry-After`.
    public internal(set) var retryAfter: Duration?

    fileprivate enum CodingKeys: CodingKey {
        case status, code, title, detail, requestId, field, canonical, allowed, used, conflicts, current
        case factors, publicKey, passkeys, reason, entries
    }
}

extension KeyedDecodingContainer where Key == Problem.CodingKeys {
    /// Reads `current`. In a problem of the keyring it is not an item, and nil is returned. The decoding of ``Problem``
    /// calls this function.
    fileprivate func decodeIfPresent(_ type: ItemState.Type, forKey key: Key) throws -> ItemState? {
        guard contains(key), try !decodeNil(forKey: key) else { return nil }
        let members = try nestedContainer(keyedBy: KeyringKeys.self, forKey: key)
        return members.contains(.keyring) ? nil : try decode(type, forKey: key)
    }
}

private enum KeyringKeys: CodingKey { case keyring }

extension Problem {
    /// True when a later entry of a shared vault's log is the reason.
    var isAboutMembership: Bool { ["stale_generation", "membership_moved"].contains(code) }

    /// This account may only read the items of a shared vault. No request was sent.
    static let notPermitted = Problem(
        status: 403, code: "not_permitted", title: "", detail: nil, requestId: nil, field: nil, canonical: nil,
        allowed: nil, used: nil, conflicts: nil, current: nil, retryAfter: nil)

    /// This device has no session. No request was sent.
    static let sessionMissing = Problem(
        status: 401, code: .unauthenticated, title: "there is no session on this device", detail: nil, requestId: nil,
        field: nil, canonical: nil, allowed: nil, used: nil, conflicts: nil, current: nil)
}

extension Problem.Code {
    /// The session does not exist or has ended (401).
    public static let unauthenticated: Self = "unauthenticated"
    /// Userid and password key do not match (401 at a log-in, 403 within a session).
    public static let wrongCredentials: Self = "wrong_credentials"
    /// The account has a second factor and the request has no code (401).
    public static let totpRequired: Self = "totp_required"
    /// The code of the second factor is wrong, expired or already used (401 or 403).
    public static let wrongTOTP: Self = "wrong_totp"
    /// The account has passkeys, and the request has neither an answer of one nor a code (401). ``Problem/factors`` has
    /// the choice.
    public static let secondFactorRequired: Self = "second_factor_required"
    /// The passkey's answer is wrong, expired or already used (401).
    public static let wrongPasskey: Self = "wrong_passkey"
    /// A new password key needs a box for each passkey that unlocks, and for no other (428). ``Problem/passkeys`` lists
    /// them.
    public static let passkeyBoxesRequired: Self = "passkey_boxes_required"
    /// Too many attempts; ``Problem/retryAfter`` has the wait (429).
    public static let tooManyAttempts: Self = "too_many_attempts"
    /// Another account has this userid (409).
    public static let useridTaken: Self = "userid_taken"
    /// The userid has another canonical form, which ``Problem/canonical`` names (422).
    public static let useridNotCanonical: Self = "userid_not_canonical"
    /// The item has another revision than expected, or exists unexpectedly (412).
    public static let preconditionFailed: Self = "precondition_failed"
    /// This server did not issue the cursor (400).
    public static let malformedCursor: Self = "malformed_cursor"
    /// The cursor is too old or precedes a restore: list all items again (410).
    public static let cursorExpired: Self = "cursor_expired"
    /// At least one operation of a batch failed, and the server applied none (409).
    public static let batchConflict: Self = "batch_conflict"
    /// Another device has replaced the keyring (409).
    public static let keyringChanged: Self = "keyring_changed"
    /// Items are missing from a rotation, or were changed after they were staged (409).
    public static let rotationIncomplete: Self = "rotation_incomplete"
    /// The rotation was committed and cannot be changed or discarded (409).
    public static let rotationCommitted: Self = "rotation_committed"
    /// A batch has more operations than the server accepts (422).
    public static let batchTooLarge: Self = "batch_too_large"
    /// The account has reached a limit of its plan (403).
    public static let quotaExceeded: Self = "quota_exceeded"
    /// The log of a shared vault has entries that the request does not continue (409). ``Problem/entries`` has them.
    public static let membershipMoved: Self = "membership_moved"
    /// The rules of the log reject the entry (422). ``Problem/reason`` has the rule.
    public static let entryRefused: Self = "entry_refused"
    /// A shared vault has newer items than the removal names (409).
    public static let vaultMoved: Self = "vault_moved"
    /// Items are sealed under an earlier key of the shared vault (409).
    public static let staleGeneration: Self = "stale_generation"
    /// The time of an entry differs from the server's by more than 5 minutes (409).
    public static let clockSkew: Self = "clock_skew"
    /// The shared vault accepts no new entries until its owner has confirmed the log of a restored database (409).
    public static let recovering: Self = "recovering"
    /// The account is a member of the shared vault already (409).
    public static let alreadyMember: Self = "already_member"
    /// The account is the owner of shared vaults.
    public static let ownsVaults: Self = "owns_vaults"
    /// The role in the shared vault does not permit the request (403).
    public static let roleTooLow: Self = "role_too_low"
    /// The resource does not exist (404).
    public static let notFound: Self = "not_found"
    /// The resource existed and has ended (410).
    public static let gone: Self = "gone"
}
