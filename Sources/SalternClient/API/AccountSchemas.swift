public import Foundation

/// The server's description of itself (`GET /v1/service`).
public struct ServiceDescription: Decodable, Sendable {
    /// The parameters of key derivation that the server accepts.
    public struct KDF: Decodable, Sendable {
        /// The name of the algorithm: `PBKDF2-HMAC-SHA256`.
        public let algorithm: String
        /// The iterations for a new account.
        public let iterations: Int
        /// The minimum number of iterations that the server accepts.
        public let minimumIterations: Int
        /// The maximum number of iterations that the server accepts.
        public let maximumIterations: Int
        /// The length of a password key, in bytes: 32.
        public let keyLength: Int
    }

    /// The shares that the server accepts.
    public struct Shares: Decodable, Sendable {
        /// The formats of sealed payloads that the page behind a link can open.
        public let formats: [String]
        /// True when shares can be created without an account.
        public let anonymous: Bool
    }

    /// The limits of requests, the same for all accounts.
    public struct Limits: Decodable, Sendable {
        /// The longest userid, in bytes of UTF-8.
        public let useridBytes: Int
        /// The longest sealed keyring, in bytes.
        public let keyringBytes: Int
        /// The longest body of a request that writes one item, in bytes of JSON.
        public let itemRequestBytes: Int
        /// The maximum number of items in one page of a listing.
        public let itemsPerPage: Int
        /// The maximum number of changes in one page.
        public let changesPerPage: Int
        /// The maximum number of operations in one batch.
        public let batchOperations: Int
        /// The longest body of a batch, in bytes of JSON.
        public let batchRequestBytes: Int
    }

    /// The SHA-256 pins of the server's keys, in the form `sha256//BASE64`.
    public struct Pins: Decodable, Sendable {
        /// The pins of the key in use.
        public let active: [String]
        /// The pins of the key that the next renewal activates.
        public let backup: [String]
    }

    /// The operator's name for the service.
    public let name: String
    /// The version of the server; nil when the operator hides it.
    public let version: String?
    /// The prefix of every salt. It never changes.
    public let saltPrefix: String
    /// The parameters of key derivation.
    public let kdf: KDF
    /// `open`, `invite` or `closed`.
    public let registration: String
    /// The formats of sealed items that the server accepts.
    public let formats: [String]
    /// The shares that the server accepts.
    public let shares: Shares
    /// The limits of requests.
    public let limits: Limits
    /// The pins of the server's keys. Add a new backup pin to those of the app. Never replace them by this list alone.
    public let pins: Pins
}

/// The parameters by which a client derives keys from a password.
public struct KDFParameters: Codable, Hashable, Sendable {
    /// The name of the algorithm: `PBKDF2-HMAC-SHA256`.
    public let algorithm: String
    /// The prefix of every salt of the server.
    public let saltPrefix: String
    /// The salt of the account: ``saltPrefix`` followed by the userid.
    public let salt: String
    /// The iterations of the account's password key.
    public let iterations: Int
    /// The length of the password key, in bytes: 32.
    public let keyLength: Int

    /// Creates parameters without a request to the server.
    public init(algorithm: String, saltPrefix: String, salt: String, iterations: Int, keyLength: Int) {
        self.algorithm = algorithm
        self.saltPrefix = saltPrefix
        self.salt = salt
        self.iterations = iterations
        self.keyLength = keyLength
    }
}

/// A session that was opened.
public struct NewSession: Decodable, Sendable {
    /// The id of the session, as in ``SessionDescription/id``.
    public let id: SessionID
    /// The bearer token. The server keeps a hash of it and never returns it again.
    public let token: Token
    /// The end of the session's absolute lifetime. A session that is not used ends earlier.
    public let expiresAt: Date
}

/// The reply to a registration.
public struct RegistrationReply: Decodable, Sendable {
    /// The id of the account. It never changes.
    public let accountId: AccountID
    /// The first session of the account.
    public let session: NewSession
    /// The token to send with the next log-in on this device; see ``DeviceClaim/token``.
    public let deviceToken: Token?
}

/// The reply to a log-in.
public struct LoginReply: Decodable, Sendable {
    /// The id of the account. It never changes.
    public let accountId: AccountID
    /// The session that was opened.
    public let session: NewSession
    /// The token to send with the next log-in on this device; see ``DeviceClaim/token``.
    public let deviceToken: Token?
    /// True when the account has fewer iterations than the server requires of new accounts.
    public let kdfUpgradeRequired: Bool
    /// The sealed keyring; nil when the account has none.
    public let keyring: Base64Bytes?
    /// The revision of ``keyring``; nil when the account has none.
    public let keyringRevision: Revision?
}

/// The reply to a recovery: a session that can only set a new credential.
public struct RecoveryReply: Decodable, Sendable {
    /// The parameters of the account's password key.
    public struct KDF: Decodable, Sendable {
        /// The iterations of the present password key. A new one has at least as many.
        public let iterations: Int
    }

    /// The id of the account. It never changes.
    public let accountId: AccountID
    /// The session that was opened. It can only set a new credential.
    public let session: NewSession
    /// The parameters of the account's password key.
    public let kdf: KDF
    /// The keyring that the recovery code opens; nil when none was set.
    public let keyring: Base64Bytes?
    /// The revision of the account's own keyring, which the new credential replaces; nil when there is none.
    public let keyringRevision: Revision?
    /// The keyrings that the code opened before a session replaced them; nil when none was replaced.
    public let keptKeyrings: [Base64Bytes]?
}

/// A keyring that was replaced and can be restored.
public struct KeptKeyring: Decodable, Sendable {
    /// The sealed keyring; nil when the account had none.
    public let keyring: Base64Bytes?
    /// The revision of ``keyring``; nil when the account had none.
    public let revision: Revision?
    /// The keyring that the recovery code opened; nil without one, and after the code was replaced.
    public let recoveryKeyring: Base64Bytes?
    /// True when the request that replaced the keyring contained the password key.
    public let withPasswordKey: Bool
    /// The time at which another keyring replaced it.
    public let replacedAt: Date
    /// The time at which the server removes the keyring.
    public let expiresAt: Date
}

/// The keyring and the revision that it has.
public struct KeyringReply: Decodable, Sendable {
    /// The sealed keyring.
    public let keyring: Base64Bytes
    /// The revision of the keyring, by a counter of its own.
    public let revision: Revision
}

/// The reply to a change of the credential.
public struct CredentialReply: Decodable, Sendable {
    /// The parameters of the new password key.
    public struct KDF: Decodable, Sendable {
        /// The iterations of the new password key.
        public let iterations: Int
    }

    /// The parameters of the new password key.
    public let kdf: KDF
    /// The number of sessions that the change has ended.
    public let sessionsEnded: Int
    /// True when the session that sent the request is one of them.
    public let currentSessionEnded: Bool
    /// The revision of the account's keyring; nil when there is none.
    public let keyringRevision: Revision?
    /// The new device token; it replaces the previous one. See ``DeviceClaim/token``.
    public let deviceToken: Token?
    /// The new userid after a change of the userid; nil otherwise.
    public let userid: String?
}

/// An account with its plan, limits and usage.
public struct AccountDescription: Decodable, Sendable {
    /// The limits of the account's plan.
    public struct Limits: Codable, Hashable, Sendable {
        /// The time for which a deleted item can be restored from the server, in days.
        public let deletedDays: Int
        /// The maximum number of items.
        public let items: Int64
        /// The maximum number of sealed bytes of one item, title and body together.
        public let itemBytes: Int64
        /// The maximum number of sealed bytes of all items.
        public let bytes: Int64
        /// The maximum number of sessions at one time.
        public let sessions: Int64
        /// The maximum number of open shares.
        public let shares: Int64
    }

    /// The part of the limits that is in use.
    public struct Usage: Codable, Hashable, Sendable {
        /// The number of items.
        public let items: Int64
        /// The sealed bytes of all items.
        public let bytes: Int64
        /// The number of older versions of items; nil from a server that keeps none.
        public let versions: Int64?
        /// The sealed bytes of the older versions; nil from a server that keeps none.
        public let versionBytes: Int64?
        /// The number of sessions.
        public let sessions: Int64
        /// The number of open shares.
        public let shares: Int64
    }

    /// The state of the second factor.
    public struct SecondFactor: Decodable, Sendable {
        /// True when a log-in needs a code.
        public let totp: Bool
        /// The number of unused recovery codes of the second factor, 0 to 10.
        public let recoveryCodesLeft: Int
    }

    /// The state of the printed recovery code.
    public struct Recovery: Decodable, Sendable {
        /// True when a printed code recovers the account.
        public let set: Bool
        /// The time at which the code was set; nil without one.
        public let createdAt: Date?
    }

    /// The id of the account. It never changes.
    public let accountId: AccountID
    /// The userid in its canonical form.
    public let userid: String
    /// The name of the plan.
    public let plan: String
    /// The limits of the plan.
    public let limits: Limits
    /// The part of the limits that is in use.
    public let usage: Usage
    /// The state of the second factor.
    public let secondFactor: SecondFactor
    /// The state of the printed recovery code.
    public let recovery: Recovery
    /// The time at which the account was created.
    public let createdAt: Date
    /// The time at which a purchase receipt was last stored; nil without one.
    public let receiptUpdatedAt: Date?
    /// See ``ChangePage/revisionBase``.
    public let revisionBase: Int64?
}

/// One session of the account.
public struct SessionDescription: Decodable, Sendable {
    /// The device of a session.
    public struct Device: Decodable, Sendable {
        /// The name that the device gave itself at the log-in.
        public let name: String
    }

    /// The id of the session, for ``Vault/endSession(_:)``.
    public let id: SessionID
    /// The device of the session; nil when it gave no name.
    public let device: Device?
    /// The time of the log-in.
    public let createdAt: Date
    /// The time of the last request. The server records it at most once a minute.
    public let lastUsedAt: Date
    /// The end of the session's absolute lifetime. A session that is not used ends earlier.
    public let expiresAt: Date
    /// True for the session of this device.
    public let current: Bool
}

/// One entry of the security log.
public struct SecurityEvent: Decodable, Sendable {
    /// The kind of the event, such as `session_opened`. openapi.yaml lists the kinds; more can be added.
    public let kind: String
    /// The time of the event. While it is ``ongoing``, the time of the last occurrence.
    public let occurredAt: Date
    /// The session that the event is about; nil when there is none.
    public let sessionId: SessionID?
    /// The device of that session; nil when it gave no name.
    public let device: SessionDescription.Device?
    /// The number of occurrences in the event; nil for a single one.
    public let count: Int?
    /// The time of the first occurrence, or of the beginning of a state that has ended.
    public let since: Date?
    /// True while further occurrences can be added to ``count``.
    public let ongoing: Bool?
}

/// A page of the security log, the latest first.
public struct SecurityLogPage: Decodable, Sendable {
    /// The events of the page, the latest first.
    public let events: [SecurityEvent]
    /// The argument for the next page; nil on the last one.
    public let nextPage: String?
}

/// A secret for one-time passwords, shown once.
public struct TOTPSecret: Decodable, Sendable {
    /// The secret in base32 (RFC 4648 section 6), for a person to type into an authenticator app.
    public let secret: String
    /// The secret as an `otpauth:` URI, for a QR code.
    public let uri: String
}

/// A rotation that was opened.
public struct RotationReply: Decodable, Sendable {
    /// The id of the rotation.
    public let id: RotationID
    /// The time at which the server discards the rotation when it is not committed.
    public let expiresAt: Date
    /// The number of items to stage.
    public let items: Int
    /// The account's revision at the beginning of the rotation.
    public let revision: Revision
}

/// The state of a rotation after a request that staged items.
public struct StagedReply: Decodable, Sendable {
    /// The number of staged items.
    public let staged: Int
    /// The sealed bytes of the staged items.
    public let bytes: Int64
    /// The items of the request that were changed after they were read. Read and stage them again.
    public let outdated: [ItemID]
}

/// The reply to the commit of a rotation.
public struct RotationCommitReply: Decodable, Sendable {
    /// The number of items that were replaced.
    public let items: Int
    /// The number of staged items that were dropped because they had been deleted.
    public let dropped: Int
    /// The account's revision after the rotation.
    public let revision: Revision
    /// The number of sessions that the rotation has ended.
    public let sessionsEnded: Int
    /// True when the session that sent the request is one of them.
    public let currentSessionEnded: Bool
    /// The revision of the account's keyring; nil when there is none.
    public let keyringRevision: Revision?
    /// The new device token; it replaces the previous one. See ``DeviceClaim/token``.
    public let deviceToken: Token?
}
