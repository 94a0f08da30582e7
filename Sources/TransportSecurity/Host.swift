internal import Glibc

/// A host of a certificate.
public enum Host: Hashable, Sendable {
    /// A DNS name in ASCII and lower case. The first label may be `*`.
    case name(String)
    /// An IPv4 address in 4 bytes or an IPv6 address in 16, in network order.
    case address([UInt8])

    /// Reads an IP address or a DNS name. Names outside ASCII need their `xn--` form.
    public init(_ text: String) throws(CertificateError) {
        if let address = Self.addressBytes(text) {
            self = .address(address)
        } else {
            let name = text.lowercased()
            guard Self.isName(name) else { throw .invalidHost(text) }
            self = .name(name)
        }
    }

    private static func addressBytes(_ text: String) -> [UInt8]? {
        var version4 = in_addr()
        if inet_pton(AF_INET, text, &version4) == 1 { return withUnsafeBytes(of: version4) { [UInt8]($0) } }
        var version6 = in6_addr()
        if inet_pton(AF_INET6, text, &version6) == 1 { return withUnsafeBytes(of: version6) { [UInt8]($0) } }
        return nil
    }

    private static func isName(_ name: String) -> Bool {
        guard (1...253).contains(name.utf8.count) else { return false }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        // A name with digits only after the last dot is a mistyped address.
        guard let last = labels.last, !last.utf8.allSatisfy(Self.isDigit) else { return false }
        return labels.enumerated().allSatisfy { index, label in
            if index == 0, label == "*" { return labels.count > 2 }
            return (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                && label.utf8.allSatisfy { isDigit($0) || isLetter($0) || $0 == UInt8(ascii: "-") }
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }
}

extension Host: CustomStringConvertible {
    /// The name, or the usual text of the address.
    public var description: String {
        switch self {
        case .name(let name): return name
        case .address(let bytes):
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            let family = bytes.count == 4 ? AF_INET : AF_INET6
            guard bytes.count == 4 || bytes.count == 16,
                inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil
            else { return "(invalid address)" }
            return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
    }
}
