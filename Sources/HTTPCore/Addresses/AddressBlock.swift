/// A block of addresses, such as `10.0.0.0/8` or `2001:db8::/32` (RFC 4632, RFC 4291 §2.3).
public struct AddressBlock: Hashable, Sendable {
    private let first: IPAddress
    /// The bits of the prefix, counted for IPv6.
    private let length: Int

    /// Reads `address/length`, or one address.
    ///
    /// Returns nil for other text, for set bits after the prefix (a typing error), and for a length of 0, which matches
    /// all addresses.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = IPAddress(String(parts[0])) else { return nil }
        var length = 128
        if parts.count == 2 {
            let bits = first.isIPv4 && !parts[0].contains(":") ? 32 : 128
            guard let number: Int = ASCII.wholeNumber(parts[1]), (1...bits).contains(number) else { return nil }
            length = 128 - bits + number
        }
        guard length == 128 || first.bits << length == 0 else { return nil }
        self.first = first
        self.length = length
    }

    /// Returns whether an address is in the block.
    public func contains(_ address: IPAddress) -> Bool {
        (address.bits ^ first.bits) >> (128 - length) == 0
    }
}
