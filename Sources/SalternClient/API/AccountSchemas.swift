public import Foundation

/// What the server says of itself.
public struct ServiceDescription: Decodable, Sendable {
    public struct KDF: Decodable, Sendable {
        public let algorithm: String
        public let iterations: Int
        public let minimumIterations: Int
        public let maximumIterations: Int
        public let keyLength: Int
    }

    public struct Shares: Decodable, Sendable {
        public let formats: [String]
        public let anonymous: Bool
    }

    public struct Limits: Decodable, Sendable {
        public let useridBytes: Int
        public let keyringBytes: Int
        public let itemRequestBytes: Int
        public let itemsPerPage: Int
        public let changesPerPage: Int
        public let batchOperations: Int
        public let batchRequestBytes: Int
    }

    public struct Pins: Decodable, Sendable {
        public let active: [String]
        public let backup: [String]
    }

    public let name: String
    public let version: String?
    public let saltPrefix: String
    public let kdf: KDF
    /// `open`, `invite` or `closed`.
    public let registration: String
    public let formats: [String]
    public let shares: Shares
    public let limits: Limits
    public let pins: Pins
}

/// What a client needs before it can stretch a password.
public struct KDFParameters: Codable, Hashable, Sendable {
    public let algorithm: String
    public let saltPrefix: String
    public let salt: String
    public let iterations: Int
    public let keyLength: Int

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
    public let id: SessionID
    public let token: Token
    public let expiresAt: Date
}

/// What a registration answers.
public struct RegistrationReply: Decodable, Sendable {
    public let accountId: AccountID
    public let session: NewSession
    public let deviceToken: Token?
}

/// What a log-in answers.
public struct LoginReply: Decodable, Sendable {
    public let accountId: AccountID
    public let session: NewSession
    public let deviceToken: Token?
    public let kdfUpgradeRequired: Bool
    public let keyring: Base64Bytes?
    public let keyringRevision: Revision?
}

/// What a recovery answers: a session that can do nothing but set a new credential.
public struct RecoveryReply: Decodable, Sendable {
    public struct KDF: Decodable, Sendable {
        public let iterations: Int
    }

    public let accountId: AccountID
    public let session: NewSession
    public let kdf: KDF
    public let keyring: Base64Bytes?
    public let keyringRevision: Revision?
    /// The keyring that the code opened before a session replaced it; nil when none was replaced.
    public let keptKeyrings: [Base64Bytes]?
}

/// A keyring that was replaced and can be restored.
public struct KeptKeyring: Decodable, Sendable {
    /// Nil when the account had none.
    public let keyring: Base64Bytes?
    public let revision: Revision?
    /// The keyring that the recovery code opened; nil without one, and after the code was replaced.
    public let recoveryKeyring: Base64Bytes?
    /// True when the request that replaced it had the password key.
    public let withPasswordKey: Bool
    public let replacedAt: Date
    /// The server removes it then.
    public let expiresAt: Date
}

/// The keyring and the revision that it has.
public struct KeyringReply: Decodable, Sendable {
    public let keyring: Base64Bytes
    public let revision: Revision
}

/// What a change of the credential has come to.
public struct CredentialReply: Decodable, Sendable {
    public struct KDF: Decodable, Sendable {
        public let iterations: Int
    }

    public let kdf: KDF
    public let sessionsEnded: Int
    public let currentSessionEnded: Bool
    public let keyringRevision: Revision?
    public let deviceToken: Token?
    /// For a change of the userid.
    public let userid: String?
}

/// Who one is, and what one has.
public struct AccountDescription: Decodable, Sendable {
    public struct Limits: Codable, Hashable, Sendable {
        public let deletedDays: Int
        public let items: Int64
        public let itemBytes: Int64
        public let bytes: Int64
        public let sessions: Int64
        public let shares: Int64
    }

    public struct Usage: Codable, Hashable, Sendable {
        public let items: Int64
        public let bytes: Int64
        /// Older versions of items, and their sealed bytes; nil from a server that keeps none.
        public let versions: Int64?
        public let versionBytes: Int64?
        public let sessions: Int64
        public let shares: Int64
    }

    public struct SecondFactor: Decodable, Sendable {
        public let totp: Bool
        public let recoveryCodesLeft: Int
    }

    public struct Recovery: Decodable, Sendable {
        public let set: Bool
        public let createdAt: Date?
    }

    public let accountId: AccountID
    public let userid: String
    public let plan: String
    public let limits: Limits
    public let usage: Usage
    public let secondFactor: SecondFactor
    public let recovery: Recovery
    public let createdAt: Date
    public let receiptUpdatedAt: Date?
    /// See ``ChangePage/revisionBase``.
    public let revisionBase: Int64?
}

/// One session of the account.
public struct SessionDescription: Decodable, Sendable {
    public struct Device: Decodable, Sendable {
        public let name: String
    }

    public let id: SessionID
    public let device: Device?
    public let createdAt: Date
    public let lastUsedAt: Date
    public let expiresAt: Date
    public let current: Bool
}

/// One entry of the security log.
public struct SecurityEvent: Decodable, Sendable {
    /// What happened; more kinds may be added.
    public let kind: String
    public let occurredAt: Date
    public let sessionId: SessionID?
    public let device: SessionDescription.Device?
    public let count: Int?
    public let since: Date?
    public let ongoing: Bool?
}

/// A page of the security log, the latest first.
public struct SecurityLogPage: Decodable, Sendable {
    public let events: [SecurityEvent]
    public let nextPage: String?
}

/// A secret for one-time passwords, shown once.
public struct TOTPSecret: Decodable, Sendable {
    public let secret: String
    public let uri: String
}

/// A rotation that was opened.
public struct RotationReply: Decodable, Sendable {
    public let id: RotationID
    public let expiresAt: Date
    public let items: Int
    public let revision: Revision
}

/// What is staged.
public struct StagedReply: Decodable, Sendable {
    public let staged: Int
    public let bytes: Int64
    public let outdated: [ItemID]
}

/// What the commit of a rotation has come to.
public struct RotationCommitReply: Decodable, Sendable {
    public let items: Int
    public let dropped: Int
    public let revision: Revision
    public let sessionsEnded: Int
    public let currentSessionEnded: Bool
    public let keyringRevision: Revision?
    public let deviceToken: Token?
}
