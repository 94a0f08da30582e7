import CommandLineKit
import Foundation
import SalternClient

/// The stored data of an account beside its items: the server's address and authentication. It contains no secrets.
struct AccountProfile: Codable, Equatable {
    var server: String
    var userid: String
    /// The pins from options.
    var pins: [String]
    /// The pins that the server has published over a pinned connection, so that a client tolerates two changes of the
    /// server's key.
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

    /// Returns the profile with the vault's userid, which an uncertain change may have replaced.
    func naming(_ vault: Vault) async throws -> AccountProfile {
        var next = self
        next.userid = try await vault.userid ?? userid
        return next
    }

    /// Returns the profile with the values of `next` that differ from `former`.
    func changed(from former: AccountProfile, to next: AccountProfile) -> AccountProfile {
        var result = self
        func take<Value: Equatable>(_ value: WritableKeyPath<AccountProfile, Value>) {
            if next[keyPath: value] != former[keyPath: value] { result[keyPath: value] = next[keyPath: value] }
        }
        take(\.server)
        take(\.userid)
        take(\.pins)
        take(\.publishedPins)
        take(\.certificate)
        take(\.saltPrefix)
        take(\.deviceName)
        return result
    }

    /// Returns the profile with the server's published pins. Malformed ones, and those of a connection without a pin,
    /// are ignored.
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

/// The local name of an account, which can be any text. Its profile and its folder have the name, too.
struct AccountName: Hashable, Sendable, CustomStringConvertible {
    let description: String
    /// The name in a form that is safe for a terminal.
    var shown: String { VisibleText.visible(description) }
    /// The name as one component of a path.
    let component: String

    /// The longest component, in bytes. Profiles and folders add to it, up to the 255 bytes of a file's name.
    private static let limit = 240

    /// - Throws: ``UsageError`` for an empty name, and for one that is too long for a file.
    init(_ text: String) throws(UsageError) {
        let plain = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@+-_.")
        guard let escaped = text.addingPercentEncoding(withAllowedCharacters: plain), !escaped.isEmpty else {
            throw UsageError(message: "the account's name is empty: see --account")
        }
        component = escaped.hasPrefix(".") ? "%2E" + escaped.dropFirst() : escaped
        guard component.utf8.count <= Self.limit else {
            throw UsageError(
                message: "the account's name is too long for a file name: give a shorter one with --account")
        }
        description = text
    }

    /// Creates the name from a component of a path; nil for any other component.
    init?(component: Substring) {
        guard let text = String(component).removingPercentEncoding, let name = try? AccountName(text) else {
            return nil
        }
        self = name
    }
}

extension Arguments {
    /// Parses `--account NAME`; nil when it is absent.
    mutating func accountName() throws(UsageError) -> AccountName? {
        guard let text = try option("--account") else { return nil }
        return try AccountName(text)
    }
}
