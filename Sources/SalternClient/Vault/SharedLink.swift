internal import Cryptography
public import Foundation

/// A link that opens a share in any browser: `https://host/s/ID#PASSPHRASE`.
///
/// ```swift
/// let shared = try await vault.share(text: "Buy salt.", base: url)
/// show(String(try await SharedLink.open(shared.url, over: transport)) ?? "")
/// ```
public struct SharedLink: Sendable {
    /// The whole link. Its fragment contains the passphrase, which no request sends.
    public let url: URL
    /// The token that changes and deletes the share. ``Vault/endShare(_:)`` does not need it.
    public let manageToken: Token
    /// The id of the share, for ``Vault/endShare(_:)``.
    public let id: String

    private static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    /// The characters of a passphrase, with 131 random bits.
    private static let passphraseCount = 22
    /// A random passphrase cannot be guessed, so few iterations are sufficient.
    private static let iterations = 10_000

    /// Generates a passphrase in which every letter and digit has the same probability.
    static func randomPassphrase() -> SecureBytes {
        SecureBytes(count: passphraseCount) { passphrase in
            for index in passphrase.indices {
                var byte = SecureRandom.bytes(1)[0]
                while byte >= 248 { byte = SecureRandom.bytes(1)[0] }
                passphrase[index] = alphabet[Int(byte) % alphabet.count]
            }
        }
    }

    static func content(
        _ payload: some ByteSource, _ passphrase: SecureBytes, expiresAt: Date?, maxViews: Int?
    ) throws -> ShareContent {
        let salt = SecureRandom.bytes(16)
        let key = try PBKDF2.deriveKey(from: passphrase, salt: salt, unsafeUncheckedIterations: iterations)
        return ShareContent(
            format: "aes-256-gcm", salt: salt, iterations: iterations, sealed: try AESGCM.seal(payload, using: key),
            expiresAt: expiresAt, maxViews: maxViews)
    }
}

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

/// Creates, lists and deletes the shares of an account.
struct ShareRequests {
    let session: VaultSession

    /// The maximum number of pages that are followed, for a million shares. A hostile server could otherwise send pages
    /// without end.
    private static let pageLimit = 2_000

    /// Returns the account's open shares, the newest first.
    func list() async throws(VaultError) -> [ShareHeader] {
        let token = try session.open.token
        var shares: [ShareHeader] = []
        var ids: Set<String> = []
        var next: String?
        for _ in 0..<Self.pageLimit {
            let cursor = next
            let page = try await session.call { api throws(APIError) in
                try await api.listShares(page: cursor, limit: 500, token)
            }
            guard page.shares.count <= 500, page.shares.allSatisfy({ ids.insert($0.id).inserted }) else { break }
            shares += page.shares
            guard let following = page.nextPage else { return shares }
            if following == next { break }
            next = following
        }
        throw .unavailable(.unexpectedReply)
    }

    /// Deletes a share: its link becomes invalid.
    func end(_ id: String) async throws(VaultError) {
        let token = try session.open.token
        do throws(APIError) {
            try await session.settings.retries({ () throws(APIError) in try await session.api.deleteShare(id, token) })
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
    }

    /// Shares a payload behind a link. The table in docs/protocol.md, "Shares", lists how the page shows it.
    func create(
        _ payload: SecureBytes, base: URL, expiresAt: Date?, maxViews: Int?
    ) async throws(VaultError) -> SharedLink {
        let token = try session.open.token
        let passphrase = SharedLink.randomPassphrase()
        guard
            let content = try? SharedLink.content(payload, passphrase, expiresAt: expiresAt, maxViews: maxViews)
        else { throw .unreadable }
        let header: ShareHeader
        // The request is not repeated, because a second one would create another share.
        do throws(APIError) { header = try await session.api.createShare(content, token) } catch {
            throw VaultError(error)
        }
        let fragment = passphrase.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        guard let manageToken = header.manageToken, ShareAddress.isID(header.id),
            let server = PinnedServer.canonical(base.absoluteString),
            let url = URL(string: "\(server)/s/\(header.id)#\(fragment)")
        else { throw .unavailable(.unexpectedReply) }
        return SharedLink(url: url, manageToken: manageToken, id: header.id)
    }
}
