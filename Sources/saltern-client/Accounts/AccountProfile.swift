import Foundation
import SalternClient

/// What is remembered of an account beside its items: where the server is and how it is recognised. No secrets.
struct AccountProfile: Codable, Equatable {
    var server: String
    var userid: String
    /// Those that a person has given.
    var pins: [String]
    /// Those that the server has published over a connection that was pinned: so that a client outlives two changes of
    /// the server's key.
    var publishedPins: [String] = []
    /// The only anchor, in PEM; nil for the system's.
    var certificate: String?
    var saltPrefix: String
    var deviceName: String

    func transport(rateLimit: Int? = nil) throws(TransportError) -> CurlTransport {
        try transport(publishedPins: publishedPins, rateLimit)
    }

    private func transport(publishedPins: [String], _ rateLimit: Int? = nil) throws(TransportError) -> CurlTransport {
        let known = pins + publishedPins.filter { !pins.contains($0) }
        return try CurlTransport(
            CurlTransport.Server(base: server, pins: known, anchor: certificate.map { Array($0.utf8) }),
            rateLimit: rateLimit)
    }

    func settings(folder: URL, rateLimit: Int? = nil) throws(TransportError) -> VaultSettings {
        VaultSettings(
            folder: folder, transport: try transport(rateLimit: rateLimit),
            stretching: StretchingRule(saltPrefix: saltPrefix, host: PinnedServer.host(of: server)),
            deviceName: deviceName)
    }

    /// With the userid that the vault knows: it may have found out that a change of it was done.
    func naming(_ vault: Vault) async throws -> AccountProfile {
        var next = self
        next.userid = try await vault.userid ?? userid
        return next
    }

    /// Takes the pins that the server has published; malformed ones, and those of a connection without a pin, are none.
    func learning(from service: ServiceDescription) -> AccountProfile {
        let published = service.pins.active + service.pins.backup
        guard !pins.isEmpty, published.count <= 16, (try? transport(publishedPins: published)) != nil else {
            return self
        }
        var next = self
        next.publishedPins = published
        return next
    }
}
