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
            requiredText("SALTERN_DATABASE_URL", "the address of PostgreSQL, as a URL or in keyword form"),
            "SALTERN_DATABASE_URL")
        let pooling = choice(
            "SALTERN_DATABASE_POOLING", ["session": SessionPooling.session, "transaction": .transaction],
            default: .session)
        database?.pooling = pooling
        return database
    }

    /// Reads the connection of the schema's owner: `SALTERN_OWNER_DATABASE_URL`, else the server's, unless a pooler
    /// exchanges its sessions.
    mutating func ownerDatabase() -> PostgresConfiguration? {
        if let text = text("SALTERN_OWNER_DATABASE_URL") { return database(text, "SALTERN_OWNER_DATABASE_URL") }
        let database = serverDatabase()
        if database?.pooling == .transaction {
            note(
                "SALTERN_OWNER_DATABASE_URL is needed with SALTERN_DATABASE_POOLING=transaction: it leads to PostgreSQL "
                    + "directly")
        }
        return database
    }

    mutating func database(_ text: String, _ name: String) -> PostgresConfiguration? {
        guard !text.isEmpty else { return nil }
        do throws(PostgresError) {
            return try PostgresConfiguration(text)
        } catch {
            note("\(name): \(error)")
            return nil
        }
    }
}

extension Settings {
    /// Reads the origins of web pages that may use the API: `SALTERN_ALLOWED_ORIGINS`.
    mutating func allowedOrigins() -> WebOrigins {
        WebOrigins(
            list(
                "SALTERN_ALLOWED_ORIGINS",
                "exact origins such as https://app.example.com or https://app.example.com:8443", "an origin",
                WebOrigin.init))
    }
}

/// The apps that open links to shares.
extension Settings {
    mutating func appLinks() -> AppLinks {
        AppLinks(
            apple: list(
                "SALTERN_APPLE_APP_IDS", "app ids such as A1B2C3D4E5.org.example.notes", "an app", AppleAppID.init),
            android: list(
                "SALTERN_ANDROID_APPS", "apps such as org.example.notes=AB:CD:… (SHA-256 of the signing certificate)",
                "an app", AndroidApp.init),
            appStoreID: appStoreID())
    }

    private mutating func appStoreID() -> AppStoreID? {
        guard let text = text("SALTERN_APP_STORE_ID", orNothing: "none") else { return nil }
        if let id = AppStoreID(text) { return id }
        refuse(
            "SALTERN_APP_STORE_ID", text, mustBe: "none, or the number of an app in the App Store, such as 123456789")
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
        _ name: String, _ meaning: String, _ element: String, _ read: (String) -> Value?
    ) -> [Value] {
        guard let text = text(name, orNothing: "none") else { return [] }
        let values = Self.elements(of: text).map(read)
        let known = values.compactMap(\.self)
        if known.count < values.count { refuse(name, text, mustBe: "none, or \(meaning), separated by commas") }
        if Set(known).count < known.count { note("\(name) has \(element) twice") }
        return known
    }
}

/// Reads the id and the origins of passkeys.
extension Settings {
    mutating func passkeys() -> RelyingParty? {
        let (idName, originsName) = ("SALTERN_PASSKEYS_RP_ID", "SALTERN_PASSKEYS_ORIGINS")
        let id = text(idName, orNothing: "off")
        let origins = text(originsName, orNothing: "none")
        guard let id else {
            if origins != nil { note("\(originsName) needs \(idName)") }
            return nil
        }
        let listed = Self.elements(of: origins ?? "https://\(id)")
        do throws(RelyingParty.Failure) {
            return try RelyingParty(id: id, origins: Set(listed))
        } catch {
            switch error {
            case .invalidID: refuse(idName, id, mustBe: "off, or a domain name in lower case such as example.org")
            case .noOrigins, .invalidOrigin:
                refuse(
                    originsName, origins ?? "",
                    mustBe: "none, or https origins and android:apk-key-hash:… separated by commas")
            case .foreignOrigin(let origin):
                note("\(originsName) has \(origin), whose host is neither \(id) nor below it")
            }
            return nil
        }
    }
}

/// Reads the settings of identity tokens: issuer, audiences and lifetime.
extension Settings {
    /// Reads the audiences of the operator's services: `SALTERN_TOKEN_AUDIENCES`.
    mutating func audiences() -> [Audience] {
        let name = "SALTERN_TOKEN_AUDIENCES"
        let audiences = list(
            name, "audiences such as billing,push=account,support=account+userid", "an audience", Audience.init)
        // The list compares whole elements. Two with one name differ in their options.
        if Set(audiences).count == audiences.count, Set(audiences.map(\.name)).count < audiences.count {
            note("\(name) has an audience twice")
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
            lifetime: duration(
                "SALTERN_TOKEN_LIFETIME", in: TokenPolicy.lifetimes, default: TokenPolicy.defaultLifetime))
        let path = text("SALTERN_SIGNING_KEY_FILE", orNothing: "none")
        guard issuer != nil else {
            if path != nil, !isRefused { note("SALTERN_SIGNING_KEY_FILE needs SALTERN_TOKEN_ISSUER") }
            return (policy, nil)
        }
        if policy.audiences.isEmpty { note("SALTERN_TOKEN_ISSUER needs SALTERN_TOKEN_AUDIENCES, such as billing") }
        guard let path else {
            note("SALTERN_TOKEN_ISSUER needs SALTERN_SIGNING_KEY_FILE; saltern signing-key create makes one")
            return (policy, nil)
        }
        let file = SigningKeyFile(path: path)
        do throws(CommandFailure) {
            policy.keys = try file.read()
        } catch {
            for message in error.messages { note("SALTERN_SIGNING_KEY_FILE: \(message)") }
        }
        return (policy, file)
    }

    private mutating func tokenIssuer() -> TokenIssuer? {
        let name = "SALTERN_TOKEN_ISSUER"
        guard let text = text(name, orNothing: "none") else { return nil }
        if let issuer = TokenIssuer(text) { return issuer }
        refuse(name, text, mustBe: "none, or the server's origin, such as https://sync.example.com")
        return nil
    }
}

/// Reads the settings for receivers of outgoing events.
extension Settings {
    /// Reads certificates of authorities in PEM, as bytes: `SALTERN_DESTINATION_CA`, or its file.
    ///
    /// Rejects a certificate that libcurl could not read, because every delivery would fail then.
    mutating func destinationAuthorities() -> [UInt8]? {
        let name = "SALTERN_DESTINATION_CA"
        guard let text = text(name, orNothing: "none") else { return nil }
        let bytes = Array(text.utf8)
        do throws(CertificateError) {
            _ = try Certificate.chain(pem: bytes)
            return bytes
        } catch {
            // Does not quote the value, which may contain a key.
            note("\(name) must be none, or certificates in PEM (\(name)_FILE names their file): \(error)")
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
        let idle = duration(
            "SALTERN_SESSION_IDLE_TIMEOUT", in: shortest...Self.longest, default: standard.idleTimeout)
        return SessionPolicy(
            idleTimeout: idle,
            lifetime: duration(
                "SALTERN_SESSION_LIFETIME", in: idle...Self.longest, default: max(standard.lifetime, idle)))
    }

    /// Reads the retention of data that is no longer needed.
    mutating func purgePolicy() -> PurgePolicy {
        let range = Duration.seconds(86_400)...Self.longest
        return PurgePolicy(
            tombstoneRetention: duration("SALTERN_TOMBSTONE_RETENTION", in: range, default: .seconds(90 * 86_400)),
            eventRetention: duration("SALTERN_EVENT_RETENTION", in: range, default: .seconds(400 * 86_400)))
    }

    private static let longest = Duration.seconds(3_650 * 86_400)
}

/// Settings that slow down attackers, and the sources of client addresses.
extension Settings {
    /// Reads the rate limits of each client address: `SALTERN_RATE_LIMITS`.
    mutating func rateLimits() -> RateLimits {
        guard let text = text("SALTERN_RATE_LIMITS") else { return .standard }
        if let limits = RateLimits(text) { return limits }
        let classes = RateClass.allCases.map(\.rawValue).joined(separator: ", ")
        refuse(
            "SALTERN_RATE_LIMITS", text,
            mustBe: "on, off, or figures such as login=20/5,registration=10/0.5, a burst of 1 to 1000000 and 0.01 to "
                + "1000000 a second, for any of: \(classes)")
        return .standard
    }

    /// Reads the proxies with a trusted `X-Forwarded-For`: `SALTERN_TRUSTED_PROXIES`.
    mutating func trustedProxies() -> TrustedProxies { proxies("SALTERN_TRUSTED_PROXIES") }

    /// Reads the proxies that send a header of the PROXY protocol: `SALTERN_PROXY_PROTOCOL`.
    mutating func proxyProtocolSenders() -> TrustedProxies { proxies("SALTERN_PROXY_PROTOCOL") }

    private mutating func proxies(_ name: String) -> TrustedProxies {
        guard let text = text(name, orNothing: "none") else { return TrustedProxies() }
        var blocks: [AddressBlock] = []
        for entry in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let block = AddressBlock(String(entry.drop { $0 == " " })) else {
                refuse(
                    name, text,
                    mustBe: "none, or addresses and blocks such as 127.0.0.1,10.0.0.0/8,2001:db8::/32, with no bits "
                        + "set after a block's length")
                break
            }
            blocks.append(block)
        }
        return TrustedProxies(blocks)
    }
}
