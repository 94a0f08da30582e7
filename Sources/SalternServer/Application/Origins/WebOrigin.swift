/// An origin of web pages as browsers send it in `Origin` (RFC 6454 §6.2): `https://`, a host in lower case, and a port
/// unless it is 443.
public struct WebOrigin: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// The most bytes of an origin: a host has at most 253, a port 5.
    static let byteLimit = 280

    /// Reads the exact form of browsers. Rejects `https://Example.com`, `https://example.com/` and
    /// `https://example.com:443`.
    public init?(_ text: String) {
        let form = /https:\/\/(?<host>[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:(?<port>[1-9][0-9]{0,4}))?/
        guard text.utf8.count <= Self.byteLimit, let match = text.wholeMatch(of: form), !match.host.contains("..")
        else { return nil }
        if let digits = match.port {
            guard let port = UInt16(digits), port != 443 else { return nil }
        }
        description = text
    }
}
