/// The header of a proxied connection that names the client: PROXY protocol, version 2
/// (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, section 2.2).
public struct ProxyHeader: Equatable, Sendable {
    /// The number of bytes that begin every header, and contain the length of the rest.
    public static let prefixLength = 16
    /// The maximum length of the rest. Addresses take 36 bytes; the others are TLVs, which are ignored.
    public static let restLimit = 4_096

    /// The client. Nil when the proxy itself connects (LOCAL, as for health checks) or does not name the client.
    public let client: ClientAddress?

    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]

    /// A whole header without a client, of a connection that its sender opens for itself (LOCAL).
    public static let local: [UInt8] = signature + [0x20, 0x00, 0x00, 0x00]

    /// Returns whether the bytes, however few, may begin a header.
    public static func mayBegin(with bytes: some Sequence<UInt8>) -> Bool {
        zip(bytes, signature).allSatisfy { $0 == $1 }
    }

    /// Returns the number of bytes after a prefix, which has ``prefixLength`` bytes.
    ///
    /// Returns nil for a prefix of another protocol or version, an unsupported command or address family, or a rest
    /// above ``restLimit``.
    public static func restLength(prefix: ArraySlice<UInt8>) -> Int? {
        guard prefix.count == prefixLength, mayBegin(with: prefix), let kind = Kind(prefix) else { return nil }
        let length = Int(prefix[prefix.startIndex + 14]) << 8 | Int(prefix[prefix.startIndex + 15])
        return (kind.addressLength...restLimit).contains(length) ? length : nil
    }

    /// Reads a whole header: a prefix and as many bytes as it announces. Returns nil for other bytes.
    public init?(_ bytes: [UInt8]) {
        let prefix = bytes.prefix(Self.prefixLength)
        guard let length = Self.restLength(prefix: prefix), bytes.count == Self.prefixLength + length,
            let kind = Kind(prefix)
        else { return nil }
        let rest = bytes[Self.prefixLength...]
        switch kind {
        case .withoutAddress: client = nil
        case .ipv4:
            let address = IPAddress(bits: 0xFFFF << 32 | Self.number(rest.prefix(4)))
            client = ClientAddress(address: address.description, port: Self.port(rest.dropFirst(8)))
        case .ipv6:
            let address = IPAddress(bits: Self.number(rest.prefix(16)))
            client = ClientAddress(address: address.description, port: Self.port(rest.dropFirst(32)))
        }
    }

    /// The meaning of the thirteenth and fourteenth byte.
    private enum Kind {
        case withoutAddress, ipv4, ipv6

        init?(_ prefix: ArraySlice<UInt8>) {
            let (command, family) = (prefix[prefix.startIndex + 12], prefix[prefix.startIndex + 13])
            switch (command, family) {
            // LOCAL: the family is ignored. PROXY with an unspecified family: the client is unknown.
            case (0x20, _), (0x21, 0x00): self = .withoutAddress
            case (0x21, 0x11): self = .ipv4
            case (0x21, 0x21): self = .ipv6
            default: return nil
            }
        }

        /// The number of bytes of both addresses and both ports.
        var addressLength: Int {
            switch self {
            case .withoutAddress: 0
            case .ipv4: 12
            case .ipv6: 36
            }
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt128 {
        bytes.reduce(0) { $0 << 8 | UInt128($1) }
    }

    /// Returns the source port, which precedes the other one.
    private static func port(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        UInt16(truncatingIfNeeded: number(bytes.prefix(2)))
    }
}
