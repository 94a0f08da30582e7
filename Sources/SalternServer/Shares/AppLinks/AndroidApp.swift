internal import HTTPCore

/// Identifies an Android app and its signing certificate.
public struct AndroidApp: Sendable, Hashable {
    /// For example `org.example.notes`.
    public let package: String
    /// SHA-256 of the signing certificate, as `AB:CD:…`.
    public let fingerprint: String

    /// Reads `org.example.notes=AB:CD:…`: a package of at least two parts, and 32 bytes in hexadecimal of either case.
    public init?(_ text: String) {
        let sides = text.split(separator: "=", omittingEmptySubsequences: false)
        guard sides.count == 2, Self.isPackage(sides[0]) else { return nil }
        let bytes = sides[1].split(separator: ":", omittingEmptySubsequences: false)
        guard bytes.count == 32, bytes.allSatisfy({ $0.utf8.count == 2 && $0.utf8.allSatisfy(Self.isHexDigit) }) else {
            return nil
        }
        package = String(sides[0])
        fingerprint = sides[1].uppercased()
    }

    private static func isPackage(_ name: Substring) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count >= 2 && name.utf8.count <= 255
            && parts.allSatisfy { part in
                part.utf8.first.map(ASCII.isLetter) ?? false
                    && part.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "_") }
            }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(ASCII.lowercased(byte))
    }
}
