/// The header that a proxy sends in front of a connection that it passes through: the PROXY protocol, version 2
/// (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, section 2.2). It names the client.
public struct ProxyHeader: Equatable, Sendable {
    /// The bytes that every header begins with; they say how many follow.
    public static let prefixLength = 16
    /// The longest rest that is read. Addresses take 36 bytes; the others are TLVs, which are ignored.
    public static let restLimit = 4_096

    /// The client; nil when the proxy speaks for itself (LOCAL, as in its health checks) or does not know the client.
    public let client: ClientAddress?

    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]

    /// Returns whether the bytes, however few, may be the beginning of a header.
    public static func mayBegin(with bytes: some Sequence<UInt8>) -> Bool {
        zip(bytes, signature).allSatisfy { $0 == $1 }
    }

    /// Returns how many bytes follow a prefix, of ``prefixLength`` bytes. Nil when it is none of version 2, when its command
    /// or its address family is another than this type reads, or when more than ``restLimit`` would follow.
    public static func restLength(prefix: ArraySlice<UInt8>) -> Int? {
        guard prefix.count == prefixLength, mayBegin(with: prefix), let kind = Kind(prefix) else { return nil }
        let length = Int(prefix[prefix.startIndex + 14]) << 8 | Int(prefix[prefix.startIndex + 15])
        return (kind.addressLength...restLimit).contains(length) ? length : nil
    }

    /// Reads a whole header: a prefix and as many bytes as it announces. Nil when it is anything else.
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

    /// What the thirteenth and fourteenth byte announce.
    private enum Kind {
        case withoutAddress, ipv4, ipv6

        init?(_ prefix: ArraySlice<UInt8>) {
            let (command, family) = (prefix[prefix.startIndex + 12], prefix[prefix.startIndex + 13])
            switch (command, family) {
            // LOCAL: the family is to be ignored. PROXY of an unspecified family: the client is unknown.
            case (0x20, _), (0x21, 0x00): self = .withoutAddress
            case (0x21, 0x11): self = .ipv4
            case (0x21, 0x21): self = .ipv6
            default: return nil
            }
        }

        /// The bytes of both addresses and both ports.
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

    /// The source port, which stands in front of the other one.
    private static func port(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        UInt16(truncatingIfNeeded: number(bytes.prefix(2)))
    }
}
