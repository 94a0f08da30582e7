/// The proxies that may name the client of a request.
public struct TrustedProxies: Sendable, Equatable {
    private let blocks: [AddressBlock]

    /// Trusts all addresses in the blocks; by default none.
    public init(_ blocks: [AddressBlock] = []) {
        self.blocks = blocks
    }

    /// Returns whether an address belongs to a trusted proxy.
    public func contains(_ address: IPAddress) -> Bool {
        for block in blocks where block.contains(address) { return true }
        return false
    }

    /// Returns the client of a request.
    ///
    /// That is the peer, unless the peer is a trusted proxy. Then it is the last address of `X-Forwarded-For` that is
    /// no trusted proxy. Each proxy appends the address of its peer, so earlier addresses are unverified. If an address
    /// cannot be read, the result is the peer. If all are proxies, it is the first address.
    public func client(_ fields: RequestFields, peer: ClientAddress) -> ClientAddress {
        guard !blocks.isEmpty, contains(peer.ip) else { return peer }
        return fields.withValue(named: "x-forwarded-for", client(forwardedFor:)).flatMap { $0 } ?? peer
    }

    /// Returns whether a request names another client that ``client(_:peer:)`` ignores, because the peer is no proxy.
    public func ignores(_ fields: RequestFields, peer: ClientAddress) -> Bool {
        fields.contains("x-forwarded-for") && !contains(peer.ip)
    }

    private func client(forwardedFor value: UnsafeBufferPointer<UInt8>) -> ClientAddress? {
        var client: ClientAddress?
        var end = value.count
        while end >= 0 {
            let start = value[..<end].lastIndex(of: ASCII.comma).map { $0 + 1 } ?? 0
            let entry = ASCII.trimmed(UnsafeBufferPointer(rebasing: value[start..<end]))
            let host = Self.host(entry)
            guard let ip = IPAddress(host) else { return nil }
            client = ClientAddress(address: String(decoding: host, as: UTF8.self), port: 0)
            if !contains(ip) { return client }
            end = start - 1
        }
        return client
    }

    /// Returns the address of `address`, `address:port`, `[address]` or `[address]:port`. Some proxies append the port.
    private static func host(_ entry: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        if entry.first == ASCII.openBracket, let close = entry.firstIndex(of: ASCII.closeBracket) {
            guard isPort(entry[(close + 1)...]) else { return entry }
            return UnsafeBufferPointer(rebasing: entry[1..<close])
        }
        guard let colon = entry.firstIndex(of: ASCII.colon), entry.lastIndex(of: ASCII.colon) == colon,
            isPort(entry[colon...])
        else { return entry }
        return UnsafeBufferPointer(rebasing: entry[..<colon])
    }

    /// Returns whether the text is empty or a colon with one to five digits.
    private static func isPort(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        guard let colon = text.first else { return true }
        let digits = text.dropFirst()
        return colon == ASCII.colon && (1...5).contains(digits.count) && digits.allSatisfy(ASCII.isDigit)
    }
}

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
