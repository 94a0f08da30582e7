public import Foundation

/// The sealed content of a share, with its limits.
public struct ShareContent: Codable, Hashable, Sendable {
    /// The format of the sealed payload: `aes-256-gcm` or `aes-256-gcm-iv16`.
    public var format: String
    /// The salt of the payload's key, 8 to 32 bytes.
    public var salt: Base64Bytes
    /// The PBKDF2 iterations from passphrase to key.
    public var iterations: Int
    /// The sealed payload.
    public var sealed: Base64Bytes
    /// The time at which the link ends; nil for no end.
    public var expiresAt: Date?
    /// The maximum number of times that the payload can be fetched; nil for any number.
    public var maxViews: Int?

    /// Creates the content of a share from sealed bytes.
    public init(
        format: String, salt: [UInt8], iterations: Int, sealed: [UInt8], expiresAt: Date? = nil, maxViews: Int? = nil
    ) {
        self.format = format
        self.salt = Base64Bytes(salt)
        self.iterations = iterations
        self.sealed = Base64Bytes(sealed)
        self.expiresAt = expiresAt
        self.maxViews = maxViews
    }
}

/// A share without its payload.
public struct ShareHeader: Decodable, Sendable {
    /// The id of the share, 22 characters of base62.
    public let id: String
    /// The path of the link, without host and passphrase.
    public let path: String
    /// The time at which the share was created.
    public let createdAt: Date
    /// The time at which the payload was last replaced.
    public let updatedAt: Date
    /// The time at which the link ends; nil for no end.
    public let expiresAt: Date?
    /// The maximum number of times that the payload can be fetched; nil for any number.
    public let maxViews: Int?
    /// The number of times that the present payload was fetched.
    public let views: Int
    /// The format of the sealed payload.
    public let format: String
    /// The sealed bytes of the payload.
    public let bytes: Int
    /// The token that changes and deletes the share; only in the reply that creates it.
    public let manageToken: Token?
}

/// A share that was fetched.
public struct SharePayload: Decodable, Sendable {
    /// The format of the sealed payload.
    public let format: String
    /// The salt of the payload's key.
    public let salt: Base64Bytes
    /// The PBKDF2 iterations from passphrase to key.
    public let iterations: Int
    /// The sealed payload.
    public let sealed: Base64Bytes
    /// The time at which the link ends; nil for no end and for the last view.
    public let expiresAt: Date?
    /// The number of views that are left after this one; nil when it is not limited.
    public let viewsLeft: Int?
}

/// A page of the account's shares, the newest first.
public struct SharePage: Decodable, Sendable {
    /// The shares of the page.
    public let shares: [ShareHeader]
    /// The argument for the next page; nil on the last one.
    public let nextPage: String?
}
