import CommandLineKit
import Foundation
import SalternClient

/// The options of a first contact: the server's address and authentication, and the userid.
struct FirstContact {
    static let help = """
          --server URL          https://host, or https://host:port
          --userid USERID       the userid on the server
          --pin sha256//…       a pin of the server's key, from its operator; can be
                                repeated for the backup key
          --certificate FILE    a certificate in PEM as the only trust anchor, for a
                                self-signed server certificate
          --accept-salt-prefix  accepts the salt prefix of another known server, which
                                is the same server at another address
          --account NAME        local name of the account (its userid)
          --device NAME         name of this device for other devices (the machine's
                                name)
        """

    static let trust = """
        All options but passwords and codes are remembered. Without --pin, the system's
        authorities, or --certificate alone, authenticate the server.
        """

    private let server: String?
    private let userid: String?
    private let pins: [String]
    private let certificate: String?
    private let acceptsSaltPrefix: Bool
    private let account: AccountName?
    private let device: String?

    init(_ arguments: inout Arguments) throws(UsageError) {
        server = try arguments.option("--server")
        userid = try arguments.option("--userid")
        pins = try arguments.options("--pin")
        certificate = try arguments.option("--certificate")
        acceptsSaltPrefix = arguments.flag("--accept-salt-prefix")
        account = try arguments.accountName()
        device = try arguments.option("--device")
    }

    /// The destination of a new or known account.
    struct Place {
        let name: AccountName
        var profile: AccountProfile
        let profiles: ProfileStore
        /// The account's profile when the command began; nil for a new account.
        let known: AccountProfile?
        /// True when the account had another userid on this device.
        var isRenamed: Bool { known.map { $0.userid != profile.userid } ?? false }

        func settings() throws(TransportError) -> VaultSettings {
            try profile.settings(folder: profiles.folder(name))
        }

        /// Creates or opens the account by `body`. After an error, an account that was new is removed again.
        func arrive(_ body: (VaultSettings) async throws -> Vault) async throws -> OpenAccount {
            let settings = try settings()
            // The queue of the store is in its folder. Other processes then wait until the removal, too.
            try? FileManager.default.createDirectory(
                at: settings.folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let vault = try await OpenAccount.waiting(settings.folder) {
                do {
                    return try await body(settings)
                } catch VaultError.store(.inUse) {
                    throw VaultError.store(.inUse)
                } catch {
                    await removeNew(settings)
                    throw error
                }
            }
            let profile = try await present().naming(vault)
            try profiles.save(profile, name)
            return OpenAccount(
                name: name, profile: profile, profiles: profiles, vault: vault, transport: settings.transport)
        }

        /// Returns the stored profile with the changes of this command. Another process may have changed it while this
        /// one waited for the password and for the store.
        func present() throws(CommandFailure) -> AccountProfile {
            guard let known, let stored = try profiles.profile(name) else { return profile }
            return stored.changed(from: known, to: profile)
        }

        /// Removes the folder of an account that has no profile and no data.
        private func removeNew(_ settings: VaultSettings) async {
            do {
                guard try profiles.profile(name) == nil, try await Vault.resume(settings) == nil else { return }
                profiles.remove(name)
            } catch {
                // A store that cannot be opened may have data.
            }
        }
    }

    /// Combines options and stored data, and fetches the missing data from the server.
    /// - Parameter allowsRename: True when a named known account may have another userid now.
    /// - Parameter refusesKnown: True when the account must not exist on this device.
    /// - Parameter needsUserid: False when a passkey names the account. `--account` is then enough.
    func place(
        _ console: Console, refusesKnown: Bool = false, allowsRename: Bool = false, needsUserid: Bool = true
    ) async throws -> Place {
        let profiles = try ProfileStore(console.environment)
        let names = profiles.names()
        let said = try account ?? userid.map { text throws(UsageError) in try AccountName(text) }
        guard let name = said ?? (names.count == 1 ? names.first : nil) else {
            throw UsageError(message: needsUserid ? "--userid is missing" : "--account is missing")
        }
        let known = try profiles.profile(name)
        if refusesKnown, known != nil {
            throw CommandFailure(
                "the account \(name) already exists here; see --account", status: ExitStatus.exists,
                code: "account_exists")
        }
        if let known, let userid, known.userid != userid, account == nil || !allowsRename {
            throw CommandFailure(
                "\(name) is the account of \(known.userid); see --account", status: ExitStatus.exists,
                code: "account_exists")
        }
        guard let userid = userid ?? known?.userid ?? (needsUserid ? nil : "") else {
            throw UsageError(message: "--userid is missing")
        }
        guard let server = server.map(Self.base) ?? known?.server else {
            throw UsageError(message: "--server is missing")
        }
        var profile = AccountProfile(
            server: server, userid: userid, pins: pins.isEmpty ? known?.pins ?? [] : pins,
            publishedPins: pins.isEmpty ? known?.publishedPins ?? [] : [],
            certificate: try certificate.map(Self.text) ?? known?.certificate, saltPrefix: known?.saltPrefix ?? "",
            deviceName: device ?? known?.deviceName ?? Self.hostName)
        let service = try await SalternAPI(profile.transport()).describeService()
        // Stored once: a hostile server could request another one.
        if known == nil { profile.saltPrefix = service.saltPrefix }
        try refuseForeignPrefix(of: profile, name, profiles, console)
        return Place(
            name: name, profile: profile.learning(from: service), profiles: profiles, known: known)
    }

    /// Rejects the salt prefix of another known server. With it, that site would get the other one's password key from
    /// a person who uses one password.
    private func refuseForeignPrefix(
        of profile: AccountProfile, _ name: AccountName, _ profiles: ProfileStore, _ console: Console
    ) throws {
        if acceptsSaltPrefix { return }
        for other in profiles.names() {
            guard let known = try? profiles.profile(other), known.saltPrefix == profile.saltPrefix else { continue }
            // The port of an account's own server may have changed.
            let isSame =
                other == name
                ? PinnedServer.host(of: known.server) == PinnedServer.host(of: profile.server)
                : PinnedServer.canonical(known.server) == PinnedServer.canonical(profile.server)
            if isSame { continue }
            let warning =
                "\(VisibleText.visible(profile.server)) has the salt prefix of \(VisibleText.visible(known.server)), the "
                + "server of \(other): with the password of one it could log in at the other"
            guard console.isTerminal, !console.speaksJSON else {
                throw CommandFailure(
                    "\(warning); nothing was sent; --accept-salt-prefix continues if it is the same server",
                    status: ExitStatus.untrustworthy, code: "salt_prefix_in_use")
            }
            try console.confirm("\(warning). Is it the same server?")
        }
    }

    private static func base(_ server: String) -> String {
        PinnedServer.canonical(server) ?? server
    }

    private static func text(_ path: String) throws -> String {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw CommandFailure("cannot read \(path)", status: ExitStatus.notFound, code: "file_not_found")
        }
        return String(decoding: data, as: UTF8.self)
    }

    private static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "terminal" }
        let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.isEmpty ? "terminal" : String(text.prefix(64))
    }
}
