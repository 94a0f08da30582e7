internal import Cryptography
internal import Foundation

/// The parts of a share's link: the server, the share's id and the key.
///
/// Parsing a link sends no request. A link without a usable key is rejected here, before it can use a view.
public struct ShareAddress: Sendable {
    /// The reason for which a text is not a usable link.
    public enum Malformation: Error, Hashable, Sendable {
        /// The text is not `https://host/s/ID#KEY`.
        case notALink
        /// The `#` or the part after it is missing.
        case noKey
        /// The key contains white space or a control character.
        case brokenKey
    }

    /// `https://host` or `https://host:port`, in the form of ``PinnedServer/canonical(_:)``.
    public let server: String
    /// The share's id: letters, digits, `-` and `_`.
    public let id: String
    /// The possible keys, the likeliest first: percent-decoded and trimmed, then only percent-decoded.
    let keys: [SecureBytes]

    private static let scheme = "https://"

    /// Parses `https://host/s/ID#KEY` or the older `https://host/s/ID/KEY`. White space around the link is ignored, and
    /// so are a query and a slash at the end of the path.
    public init(_ text: String) throws(Malformation) {
        let text = PastedText.trimmed(text)
        let parts = text.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let beforeFragment = parts.first.map(String.init) ?? ""
        guard beforeFragment.prefix(Self.scheme.count).lowercased() == Self.scheme else { throw .notALink }
        let rest = beforeFragment.dropFirst(Self.scheme.count).prefix { $0 != "?" }
        let path = rest.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard path.count >= 3, let server = PinnedServer.canonical(Self.scheme + path[0]), path[1] == "s",
            Self.isID(path[2])
        else { throw .notALink }
        let tail = path.dropFirst(3)
        var raw = parts.count > 1 ? String(parts[1]) : ""
        if let legacy = tail.first, !legacy.isEmpty {
            guard tail.dropFirst().allSatisfy(\.isEmpty), tail.count <= 2 else { throw .notALink }
            raw = legacy
        } else if tail.count > 1 {
            throw .notALink
        }
        self.server = server
        id = path[2]
        keys = try Self.keys(raw)
    }

    /// Parses a key alone, which a person types after the link's own key failed.
    static func keys(_ raw: String) throws(Malformation) -> [SecureBytes] {
        let raw = PastedText.trimmed(raw)
        guard !raw.unicodeScalars.contains(where: PastedText.isBreak) else { throw .brokenKey }
        let decoded = raw.removingPercentEncoding ?? raw
        let trimmed = PastedText.trimmed(decoded)
        guard !trimmed.isEmpty else { throw .noKey }
        return (trimmed == decoded ? [trimmed] : [trimmed, decoded]).map { SecureBytes(copying: $0.utf8) }
    }

    /// Returns true for a valid share id in a path.
    static func isID(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}
