public import Cryptography
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

extension Vault {
    /// Shares a payload behind a link. The table in docs/protocol.md, "Shares", lists how the page shows it.
    ///
    /// Example: "Share" in docs/app.md.
    /// - Parameter base: The server's public address, `https://host`. The link uses it instead of any address from the
    ///   server.
    public func share(
        _ payload: SecureBytes, base: URL, expiresAt: Date? = nil, maxViews: Int? = nil
    ) async throws(VaultError) -> SharedLink {
        let token = try open.token
        let passphrase = SharedLink.randomPassphrase()
        guard
            let content = try? SharedLink.content(payload, passphrase, expiresAt: expiresAt, maxViews: maxViews)
        else { throw .unreadable }
        let header: ShareHeader
        // The request is not repeated, because a second one would create another share.
        do throws(APIError) { header = try await api.createShare(content, token) } catch { throw VaultError(error) }
        let fragment = passphrase.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        guard let manageToken = header.manageToken, ShareAddress.isID(header.id),
            let server = PinnedServer.canonical(base.absoluteString),
            let url = URL(string: "\(server)/s/\(header.id)#\(fragment)")
        else { throw .unavailable(.unexpectedReply) }
        return SharedLink(url: url, manageToken: manageToken, id: header.id)
    }

    /// Shares a text behind a link. The page shows a text that is a JSON object as a table of its members.
    ///
    /// ```swift
    /// let shared = try await vault.share(text: note.text, base: url, expiresAt: Date() + 86_400, maxViews: 1)
    /// print(shared.url)
    /// ```
    /// - Parameters:
    ///   - base: The server's public address, `https://host`.
    ///   - expiresAt: The time at which the link ends; nil for the longest time that the server allows.
    ///   - maxViews: The maximum number of times that the link can be opened; nil for no limit.
    public func share(
        text: String, base: URL, expiresAt: Date? = nil, maxViews: Int? = nil
    ) async throws(VaultError) -> SharedLink {
        try await share(SecureBytes(text), base: base, expiresAt: expiresAt, maxViews: maxViews)
    }

    /// Opens a link of this server and uses one view.
    ///
    /// Example: "Share" in docs/app.md.
    /// - Throws: ``VaultError/notFound`` for a malformed link, without a request. ``VaultError/wrongShareKey(_:)`` with
    ///   the fetched share, for which another key can be tried without another view.
    public func open(_ link: URL) async throws(VaultError) -> SecureBytes {
        try await SharedLink.open(link, over: settings.transport)
    }
}
