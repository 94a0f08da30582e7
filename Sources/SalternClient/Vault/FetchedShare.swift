public import Cryptography
public import Foundation

/// A fetched and still sealed payload of a share.
///
/// Fetching may use the last view. Keep this value until ``open(_:)`` has succeeded: another key can be tried without
/// another view.
public struct FetchedShare: Codable, Sendable {
    private let content: ShareContent
    /// The number of remaining views; nil when it is not limited.
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

    /// Opens the payload with another key, or with a whole link, in the form in which a person types it.
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
    /// Returns the number of remaining views without using one; nil when it is not limited.
    /// - Parameter transport: A transport to ``ShareAddress/server``.
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

    /// Fetches a share and uses one view.
    /// - Parameter transport: A transport to ``ShareAddress/server``.
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

    /// Opens the share of a link and uses one view. No account is needed.
    /// - Parameter transport: A transport to the link's server.
    /// - Throws: ``VaultError/notFound`` for a malformed link, without a request. ``VaultError/wrongShareKey(_:)`` with
    ///   the fetched share, for which another key can be tried without another view.
    public static func open(_ link: URL, over transport: any HTTPTransport) async throws(VaultError) -> SecureBytes {
        guard let address = try? ShareAddress(link.absoluteString) else { throw .notFound }
        return try await fetch(address, over: transport).open(address)
    }
}
