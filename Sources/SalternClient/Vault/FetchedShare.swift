public import Cryptography
public import Foundation

/// A share's payload as the server gave it out, still sealed.
///
/// Fetching may cost the last view. Keep this until ``open(_:)`` has succeeded: it takes another key without another view.
public struct FetchedShare: Codable, Sendable {
    private let content: ShareContent
    /// The number of views that the server has left; nil when it is not limited.
    public let viewsLeft: Int?

    init(_ payload: SharePayload) {
        content = ShareContent(
            format: payload.format, salt: payload.salt.bytes, iterations: payload.iterations,
            sealed: payload.sealed.bytes)
        viewsLeft = payload.viewsLeft
    }

    /// Opens the payload with a link's key.
    /// - Throws: ``VaultError/wrongShareKey(_:)`` with this share when the key does not open it.
    public func open(_ address: ShareAddress) throws(VaultError) -> SecureBytes {
        for key in address.keys {
            if let opened = try? open(key) { return opened }
        }
        throw .wrongShareKey(self)
    }

    /// Opens the payload with another key, or with a whole link, as a person types it.
    /// - Throws: ``VaultError/wrongShareKey(_:)`` with this share when the key does not open it.
    public func open(_ keyOrLink: String) throws(VaultError) -> SecureBytes {
        let keys = (try? ShareAddress(keyOrLink).keys) ?? (try? ShareAddress.keys(keyOrLink)) ?? []
        for key in keys {
            if let opened = try? open(key) { return opened }
        }
        throw .wrongShareKey(self)
    }

    private func open(_ key: SecureBytes) throws -> SecureBytes {
        guard (1...StretchingRule.maximumIterations).contains(content.iterations),
            let length: AESGCM.NonceLength = ["aes-256-gcm": .twelve, "aes-256-gcm-iv16": .sixteen][content.format]
        else { throw VaultError.unreadable }
        let derived = try PBKDF2.deriveKey(
            from: key, salt: content.salt.bytes, unsafeUncheckedIterations: content.iterations)
        return try AESGCM.open(content.sealed.bytes, using: derived, nonceLength: length)
    }
}

extension SharedLink {
    /// Returns how many views a share has left, which costs none of them; nil when their number is not limited.
    /// - Parameter transport: Leads to ``ShareAddress/server``.
    /// - Throws: ``VaultError/notFound`` when there is no such share.
    public static func viewsLeft(
        _ address: ShareAddress, over transport: any HTTPTransport
    ) async throws(VaultError) -> Int? {
        do throws(APIError) {
            return try await SalternAPI(transport).lookAtShare(address.id)
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
    }

    /// Fetches a share, at the price of a view.
    /// - Parameter transport: Leads to ``ShareAddress/server``.
    /// - Throws: ``VaultError/notFound`` when there is no such share.
    public static func fetch(
        _ address: ShareAddress, over transport: any HTTPTransport
    ) async throws(VaultError) -> FetchedShare {
        do throws(APIError) {
            return FetchedShare(try await SalternAPI(transport).openShare(address.id))
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
    }

    /// Opens what a link leads to, at the price of a view. No account is needed.
    /// - Parameter transport: Leads to the server that the link names.
    /// - Throws: ``VaultError/notFound`` for a malformed link, without a request. ``VaultError/wrongShareKey(_:)`` with what
    ///   was fetched, which takes another key without another view.
    public static func open(_ link: URL, over transport: any HTTPTransport) async throws(VaultError) -> SecureBytes {
        guard let address = try? ShareAddress(link.absoluteString) else { throw .notFound }
        return try await fetch(address, over: transport).open(address)
    }
}
