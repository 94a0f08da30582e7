import CommandLineKit
import HTTPCore
import Postgres
import SalternServer
import TransportSecurity
import WebAuthn

extension Settings {
    /// Reads the connection of the server: `SALTERN_DATABASE_URL`.
    mutating func serverDatabase() -> PostgresConfiguration? {
        var database = database(
            requiredText(.databaseURL, "the address of PostgreSQL, as a URL or in keyword form"), .databaseURL)
        let pooling = choice(
            .databasePooling, ["session": SessionPooling.session, "transaction": .transaction],
            default: .session)
        database?.pooling = pooling
        return database
    }

    /// Reads the connection of the schema's owner: `SALTERN_OWNER_DATABASE_URL`, else the server's, unless a pooler
    /// exchanges its sessions.
    mutating func ownerDatabase() -> PostgresConfiguration? {
        if let text = text(.ownerDatabaseURL) { return database(text, .ownerDatabaseURL) }
        let database = serverDatabase()
        if database?.pooling == .transaction {
            note(
                "\(Setting.ownerDatabaseURL) is needed with \(Setting.databasePooling)=transaction: it leads to "
                    + "PostgreSQL directly")
        }
        return database
    }

    mutating func database(_ text: String, _ setting: Setting) -> PostgresConfiguration? {
        guard !text.isEmpty else { return nil }
        do throws(PostgresError) {
            return try PostgresConfiguration(text)
        } catch {
            note("\(setting): \(error)")
            return nil
        }
    }
}

extension Settings {
    /// Reads the origins of web pages that may use the API: `SALTERN_ALLOWED_ORIGINS`.
    mutating func allowedOrigins() -> WebOrigins {
        WebOrigins(
            list(
                .allowedOrigins,
                "exact origins such as https://app.example.com or https://app.example.com:8443", "an origin",
                WebOrigin.init))
    }
}

/// The apps that open links to shares.
extension Settings {
    mutating func appLinks() -> AppLinks {
        AppLinks(
            apple: list(.appleAppIDs, "app ids such as A1B2C3D4E5.org.example.notes", "an app", AppleAppID.init),
            android: list(
                .androidApps, "apps such as org.example.notes=AB:CD:… (SHA-256 of the signing certificate)",
                "an app", AndroidApp.init),
            appStoreID: appStoreID())
    }

    private mutating func appStoreID() -> AppStoreID? {
        guard let text = text(.appStoreID, orNothing: "none") else { return nil }
        if let id = AppStoreID(text) { return id }
        refuse(.appStoreID, text, mustBe: "none, or the number of an app in the App Store, such as 123456789")
        return nil
    }

    /// Returns the texts between commas, without the white space around them.
    static func elements(of text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map { word in
            String(word.trimmingPrefix(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        }
    }

    /// Reads elements between commas, without the white space around them. Rejects empty, repeated and unreadable
    /// elements.
    /// - Parameter element: The description of an element, with its article.
    mutating func list<Value: Hashable>(
        _ setting: Setting, _ meaning: String, _ element: String, _ read: (String) -> Value?
    ) -> [Value] {
        guard let text = text(setting, orNothing: "none") else { return [] }
        let values = Self.elements(of: text).map(read)
        let known = values.compactMap(\.self)
        if known.count < values.count { refuse(setting, text, mustBe: "none, or \(meaning), separated by commas") }
        if Set(known).count < known.count { note("\(setting) has \(element) twice") }
        return known
    }
}

/// Reads the id and the origins of passkeys.
extension Settings {
    mutating func passkeys() -> RelyingParty? {
        let (idSetting, originsSetting) = (Setting.passkeysRPID, Setting.passkeysOrigins)
        let id = text(idSetting, orNothing: "off")
        let origins = text(originsSetting, orNothing: "none")
        guard let id else {
            if origins != nil { note("\(originsSetting) needs \(idSetting)") }
            return nil
        }
        let listed = Self.elements(of: origins ?? "https://\(id)")
        do throws(RelyingParty.Failure) {
            return try RelyingParty(id: id, origins: Set(listed))
        } catch {
            switch error {
            case .invalidID: refuse(idSetting, id, mustBe: "off, or a domain name in lower case such as example.org")
            case .noOrigins, .invalidOrigin:
                refuse(
                    originsSetting, origins ?? "",
                    mustBe: "none, or https origins and android:apk-key-hash:… separated by commas")
            case .foreignOrigin(let origin):
                note("\(originsSetting) has \(origin), whose host is neither \(id) nor below it")
            }
            return nil
        }
    }
}

/// Reads the settings of identity tokens: issuer, audiences and lifetime.
extension Settings {
    /// Reads the audiences of the operator's services: `SALTERN_TOKEN_AUDIENCES`.
    mutating func audiences() -> [Audience] {
        let setting = Setting.tokenAudiences
        let audiences = list(
            setting, "audiences such as billing,push=account,support=account+userid", "an audience", Audience.init)
        // The list compares whole elements. Two with one name differ in their options.
        if Set(audiences).count == audiences.count, Set(audiences.map(\.name)).count < audiences.count {
            note("\(setting) has an audience twice")
        }
        return audiences
    }

    /// Reads the policy for tokens and the file of the signing keys. Without an issuer the server signs none.
    mutating func tokens() -> (policy: TokenPolicy, file: SigningKeyFile?) {
        let before = problems.count
        let issuer = tokenIssuer()
        let isRefused = problems.count > before
        var policy = TokenPolicy(
            issuer: issuer, audiences: audiences(),
            lifetime: duration(.tokenLifetime, in: TokenPolicy.lifetimes, default: TokenPolicy.defaultLifetime))
        let path = text(.signingKeyFile, orNothing: "none")
        guard issuer != nil else {
            if path != nil, !isRefused { note("\(Setting.signingKeyFile) needs \(Setting.tokenIssuer)") }
            return (policy, nil)
        }
        if policy.audiences.isEmpty { note("\(Setting.tokenIssuer) needs \(Setting.tokenAudiences), such as billing") }
        guard let path else {
            note("\(Setting.tokenIssuer) needs \(Setting.signingKeyFile); saltern signing-key create makes one")
            return (policy, nil)
        }
        let file = SigningKeyFile(path: path)
        do throws(CommandFailure) {
            policy.keys = try file.read()
        } catch {
            for message in error.messages { note("\(Setting.signingKeyFile): \(message)") }
        }
        return (policy, file)
    }

    private mutating func tokenIssuer() -> TokenIssuer? {
        let setting = Setting.tokenIssuer
        guard let text = text(setting, orNothing: "none") else { return nil }
        if let issuer = TokenIssuer(text) { return issuer }
        refuse(setting, text, mustBe: "none, or the server's origin, such as https://sync.example.com")
        return nil
    }
}

/// Reads the settings for receivers of outgoing events.
extension Settings {
    /// Reads certificates of authorities in PEM, as bytes: `SALTERN_DESTINATION_CA`, or its file.
    ///
    /// Rejects a certificate that libcurl could not read, because every delivery would fail then.
    mutating func destinationAuthorities() -> [UInt8]? {
        let setting = Setting.destinationCA
        guard let text = text(setting, orNothing: "none") else { return nil }
        let bytes = Array(text.utf8)
        do throws(CertificateError) {
            _ = try Certificate.chain(pem: bytes)
            return bytes
        } catch {
            // Does not quote the value, which may contain a key.
            note("\(setting) must be none, or certificates in PEM (\(setting.fileVariable) names their file): \(error)")
            return nil
        }
    }
}

extension SessionPolicy {
    /// Reads the settings for a command that needs no others.
    /// - Throws: ``CommandFailure`` with every problem.
    init(_ console: Console) throws(CommandFailure) {
        var settings = Settings(console.environment)
        self = settings.sessionPolicy()
        try settings.finish()
    }
}

/// Settings that the server and `saltern purge` share.
extension Settings {
    /// Reads the duration of sessions.
    mutating func sessionPolicy() -> SessionPolicy {
        let standard = SessionPolicy()
        // A session in use must not count as idle.
        let shortest = standard.touchInterval + .seconds(1)
        let idle = duration(.sessionIdleTimeout, in: shortest...Self.longest, default: standard.idleTimeout)
        return SessionPolicy(
            idleTimeout: idle,
            lifetime: duration(.sessionLifetime, in: idle...Self.longest, default: max(standard.lifetime, idle)))
    }

    /// Reads the retention of data that is no longer needed.
    mutating func purgePolicy() -> PurgePolicy {
        let range = Duration.seconds(86_400)...Self.longest
        return PurgePolicy(
            tombstoneRetention: duration(.tombstoneRetention, in: range, default: .seconds(90 * 86_400)),
            eventRetention: duration(.eventRetention, in: range, default: .seconds(400 * 86_400)))
    }

    private static let longest = Duration.seconds(3_650 * 86_400)
}

/// Settings that slow down attackers, and the sources of client addresses.
extension Settings {
    /// Reads the rate limits of each client address: `SALTERN_RATE_LIMITS`.
    mutating func rateLimits() -> RateLimits {
        guard let text = text(.rateLimits) else { return .standard }
        if let limits = RateLimits(text) { return limits }
        let classes = RateClass.allCases.map(\.rawValue).joined(separator: ", ")
        refuse(
            .rateLimits, text,
            mustBe: "on, off, or figures such as login=20/5,registration=10/0.5, a burst of 1 to 1000000 and 0.01 to "
                + "1000000 a second, for any of: \(classes)")
        return .standard
    }

    /// Reads the proxies with a trusted `X-Forwarded-For`: `SALTERN_TRUSTED_PROXIES`.
    mutating func trustedProxies() -> TrustedProxies { proxies(.trustedProxies) }

    /// Reads the proxies that send a header of the PROXY protocol: `SALTERN_PROXY_PROTOCOL`.
    mutating func proxyProtocolSenders() -> TrustedProxies { proxies(.proxyProtocol) }

    private mutating func proxies(_ setting: Setting) -> TrustedProxies {
        guard let text = text(setting, orNothing: "none") else { return TrustedProxies() }
        var blocks: [AddressBlock] = []
        for entry in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let block = AddressBlock(String(entry.drop { $0 == " " })) else {
                refuse(
                    setting, text,
                    mustBe: "none, or addresses and blocks such as 127.0.0.1,10.0.0.0/8,2001:db8::/32, with no bits "
                        + "set after a block's length")
                break
            }
            blocks.append(block)
        }
        return TrustedProxies(blocks)
    }
}
