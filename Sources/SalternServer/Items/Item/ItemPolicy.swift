/// What the service accepts as items, whatever a plan says.
public struct ItemPolicy: Sendable, Equatable {
    /// The longest body of a request that writes one item, in bytes of JSON. Base64 takes a third more than the
    /// sealed bytes, and line breaks 3 % on top.
    public var requestLimit: Int
    /// The longest body of a request that writes one item as bytes: what the largest plan allows.
    static let byteLimit = 16 * 1_048_576
    /// Whether the format `opaque` is accepted.
    public var acceptsOpaque: Bool

    public init(requestLimit: Int = 2 * 1_048_576, acceptsOpaque: Bool = true) {
        self.requestLimit = requestLimit
        self.acceptsOpaque = acceptsOpaque
    }

    /// The formats that are accepted.
    var formats: [SealedFormat] { SealedFormat.allCases.filter { acceptsOpaque || $0 != .opaque } }

    /// What is wrong with the policy, a sentence each.
    var findings: [String] {
        // More would not fit into the memory that one body may have at its peak.
        (4_096...25_165_824).contains(requestLimit)
            ? [] : ["The limit of a request that writes an item must be from 4096 to 25165824 bytes."]
    }
}
