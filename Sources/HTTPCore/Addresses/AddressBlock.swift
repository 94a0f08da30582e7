/// A block of addresses, such as `10.0.0.0/8` or `2001:db8::/32` (RFC 4632, RFC 4291 §2.3).
public struct AddressBlock: Hashable, Sendable {
    private let first: IPAddress
    /// How many bits of the address are the block's, counted as of IPv6.
    private let length: Int

    /// Reads `address/length`, or one address. Nil when it is neither, when bits behind the length are set, which is a
    /// slip, and for a length of 0: a block that holds everybody distinguishes nobody.
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

    /// Whether an address lies in the block.
    public func contains(_ address: IPAddress) -> Bool {
        (address.bits ^ first.bits) >> (128 - length) == 0
    }
}
