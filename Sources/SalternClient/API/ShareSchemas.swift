public import Foundation

/// What a share holds.
public struct ShareContent: Codable, Hashable, Sendable {
    public var format: String
    public var salt: Base64Bytes
    public var iterations: Int
    public var sealed: Base64Bytes
    public var expiresAt: Date?
    public var maxViews: Int?

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
    public let id: String
    public let path: String
    public let createdAt: Date
    public let updatedAt: Date
    public let expiresAt: Date?
    public let maxViews: Int?
    public let views: Int
    public let format: String
    public let bytes: Int
    /// Once, when the share is created: what changes and deletes it.
    public let manageToken: Token?
}

/// A share that was fetched.
public struct SharePayload: Decodable, Sendable {
    public let format: String
    public let salt: Base64Bytes
    public let iterations: Int
    public let sealed: Base64Bytes
    public let expiresAt: Date?
    public let viewsLeft: Int?
}

/// A page of the account's shares, the newest first.
public struct SharePage: Decodable, Sendable {
    public let shares: [ShareHeader]
    public let nextPage: String?
}
