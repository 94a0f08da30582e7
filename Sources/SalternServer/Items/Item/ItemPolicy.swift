/// The service's limits on items, independent of plans.
public struct ItemPolicy: Sendable, Equatable {
    /// Maximum body of a request that writes one item, in bytes of JSON. Base64 adds a third to the sealed bytes, and
    /// line breaks another 3 %.
    public var requestLimit: Int
    /// Maximum body of a request that writes one item as bytes: the limit of the largest plan.
    static let byteLimit = 16 * 1_048_576
    /// True if the format `opaque` is accepted.
    public var acceptsOpaque: Bool

    public init(requestLimit: Int = 2 * 1_048_576, acceptsOpaque: Bool = true) {
        self.requestLimit = requestLimit
        self.acceptsOpaque = acceptsOpaque
    }

    /// The accepted formats.
    var formats: [SealedFormat] { SealedFormat.allCases.filter { acceptsOpaque || $0 != .opaque } }

    /// The errors in the policy, one sentence each.
    var findings: [String] {
        // More would exceed the peak memory of one body.
        (4_096...25_165_824).contains(requestLimit)
            ? [] : ["The limit of a request that writes an item must be from 4096 to 25165824 bytes."]
    }
}
