/// The service's limits on shares, independent of plans.
public struct SharePolicy: Sendable, Equatable {
    /// True if shares may be created without an account.
    public var acceptsAnonymous: Bool
    /// Maximum number of shares without an account. Concurrent creations can exceed it by the number of database
    /// connections.
    public var anonymousLimit: Int

    public init(acceptsAnonymous: Bool = false, anonymousLimit: Int = 1_000) {
        self.acceptsAnonymous = acceptsAnonymous
        self.anonymousLimit = anonymousLimit
    }

    /// The formats that the page can open.
    static let formats: [SealedFormat] = [.aes256GCM, .aes256GCMIV16]
    /// Length of a salt in bytes.
    static let saltLengths = 8...32
    static let iterations = 1_000...10_000_000
    static let maxViews = 1...1_000_000

    /// Maximum of sealed bytes of a share without an account.
    static let anonymousByteLimit = 65_536
    /// Maximum body of a request with such a share, in bytes: base64 with line breaks, and other members.
    static let anonymousRequestLimit = 98_304
    /// Maximum life of such a share.
    static let anonymousLifetime = Duration.seconds(7 * 86_400)

    /// The errors in the policy, one sentence each.
    var findings: [String] {
        (0...100_000).contains(anonymousLimit)
            ? [] : ["The number of shares without an account must be from 0 to 100000."]
    }
}
