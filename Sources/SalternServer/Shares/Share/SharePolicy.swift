/// What the service accepts as shares, whatever a plan says.
public struct SharePolicy: Sendable, Equatable {
    /// Whether people without an account may create shares.
    public var acceptsAnonymous: Bool
    /// How many shares of people without an account there may be at a time. Creations that meet at the limit can exceed
    /// it by as many as there are database connections.
    public var anonymousLimit: Int

    public init(acceptsAnonymous: Bool = false, anonymousLimit: Int = 1_000) {
        self.acceptsAnonymous = acceptsAnonymous
        self.anonymousLimit = anonymousLimit
    }

    /// The formats that the page can open.
    static let formats: [SealedFormat] = [.aes256GCM, .aes256GCMIV16]
    /// Bytes of a salt.
    static let saltLengths = 8...32
    static let iterations = 1_000...10_000_000
    static let maxViews = 1...1_000_000

    /// Sealed bytes of a share that somebody without an account creates.
    static let anonymousByteLimit = 65_536
    /// The longest body, in bytes, of a request that carries such a share: base64 with line breaks, and the rest.
    static let anonymousRequestLimit = 98_304
    /// How long such a share lasts at most.
    static let anonymousLifetime = Duration.seconds(7 * 86_400)

    /// What is wrong with the policy, a sentence each.
    var findings: [String] {
        (0...100_000).contains(anonymousLimit)
            ? [] : ["The number of shares without an account must be from 0 to 100000."]
    }
}
