internal import HTTPCore

/// The operator's apps that open links to shares instead of the browser.
public struct AppLinks: Sendable, Equatable {
    public var apple: [AppleAppID]
    public var android: [AndroidApp]
    /// The app that Safari offers on a share's page.
    public var appStoreID: AppStoreID?

    public init(apple: [AppleAppID] = [], android: [AndroidApp] = [], appStoreID: AppStoreID? = nil) {
        self.apple = apple
        self.android = android
        self.appStoreID = appStoreID
    }
}

/// Identifies an app of Apple's platforms: `TEAMID.bundle.id`, for example `A1B2C3D4E5.org.example.notes`.
public struct AppleAppID: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// Nil unless the text is ten capital letters and digits, a period, and a bundle identifier.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 10, parts[0].utf8.allSatisfy(Self.isTeamCharacter),
            text.utf8.count <= 255,
            parts[1].split(separator: ".", omittingEmptySubsequences: false).allSatisfy(Self.isBundlePart)
        else { return nil }
        description = text
    }

    private static func isTeamCharacter(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || ASCII.isLetter(byte) && ASCII.lowercased(byte) != byte
    }

    private static func isBundlePart(_ part: Substring) -> Bool {
        !part.isEmpty && part.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == ASCII.minus }
    }
}

/// The App Store's number of an app.
public struct AppStoreID: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// Nil unless the text is 1 to 15 digits without a leading zero.
    public init?(_ text: String) {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy(ASCII.isDigit), text.first != "0" else {
            return nil
        }
        description = text
    }
}

/// Identifies an Android app and its signing certificate.
public struct AndroidApp: Sendable, Hashable {
    /// For example `org.example.notes`.
    public let package: String
    /// SHA-256 of the signing certificate, as `AB:CD:…`.
    public let fingerprint: String

    /// Reads `org.example.notes=AB:CD:…`: a package of at least two parts, and 32 bytes in hexadecimal of either case.
    public init?(_ text: String) {
        let sides = text.split(separator: "=", omittingEmptySubsequences: false)
        guard sides.count == 2, Self.isPackage(sides[0]) else { return nil }
        let bytes = sides[1].split(separator: ":", omittingEmptySubsequences: false)
        guard bytes.count == 32, bytes.allSatisfy({ $0.utf8.count == 2 && $0.utf8.allSatisfy(Self.isHexDigit) }) else {
            return nil
        }
        package = String(sides[0])
        fingerprint = sides[1].uppercased()
    }

    private static func isPackage(_ name: Substring) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count >= 2 && name.utf8.count <= 255
            && parts.allSatisfy { part in
                part.utf8.first.map(ASCII.isLetter) ?? false
                    && part.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "_") }
            }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(ASCII.lowercased(byte))
    }
}

/// `GET /.well-known/apple-app-site-association`: lists the apps of Apple's platforms that open links to shares and
/// invitations. They may also use passkeys if the server accepts them. Returns 404 without apps.
///
/// `*` in a component matches any characters including slashes, so it covers the legacy form of links.
struct ShowAppleAppSiteAssociation: OpenEndpoint {
    private let response: Response?

    init(_ links: AppLinks, acceptsPasskeys: Bool) {
        guard !links.apple.isEmpty else {
            response = nil
            return
        }
        response = .json { writer in
            writer.object { writer in
                writer.object("applinks") { writer in
                    writer.array("details") { writer in
                        writer.object { writer in
                            writer.array("appIDs") { writer in for app in links.apple { writer.string("\(app)") } }
                            writer.array("components") { writer in
                                writer.object { writer in writer.member("/", "/s/*") }
                                writer.object { writer in writer.member("/", "/j/*") }
                            }
                        }
                    }
                }
                guard acceptsPasskeys else { return }
                writer.object("webcredentials") { writer in
                    writer.array("apps") { writer in for app in links.apple { writer.string("\(app)") } }
                }
            }
        }
    }

    func respond(to request: Request) async throws -> Response {
        guard let response else { throw Problem.notFound }
        return response
    }
}

/// `GET /.well-known/assetlinks.json`: lists the Android apps that may open links to this host, and that may use its
/// passkeys if the server accepts them. Returns 404 without apps.
///
/// The app's intent filter selects the paths; here they are `/s/` and `/j/`.
struct ShowAssetLinks: OpenEndpoint {
    private let response: Response?

    init(_ links: AppLinks, acceptsPasskeys: Bool) {
        guard !links.android.isEmpty else {
            response = nil
            return
        }
        response = .json { writer in
            writer.array { writer in
                for app in Self.signatures(links.android) {
                    Self.write(app, acceptsPasskeys: acceptsPasskeys, to: &writer)
                }
            }
        }
    }

    func respond(to request: Request) async throws -> Response {
        guard let response else { throw Problem.notFound }
        return response
    }

    /// Returns each package once with all its fingerprints, in the operator's order.
    private static func signatures(_ apps: [AndroidApp]) -> [(package: String, fingerprints: [String])] {
        var found: [(package: String, fingerprints: [String])] = []
        for app in apps {
            if let index = found.firstIndex(where: { $0.package == app.package }) {
                found[index].fingerprints.append(app.fingerprint)
            } else {
                found.append((app.package, [app.fingerprint]))
            }
        }
        return found
    }

    private static func write(
        _ app: (package: String, fingerprints: [String]), acceptsPasskeys: Bool, to writer: inout JSONWriter
    ) {
        writer.object { writer in
            writer.array("relation") { writer in
                writer.string("delegate_permission/common.handle_all_urls")
                if acceptsPasskeys { writer.string("delegate_permission/common.get_login_creds") }
            }
            writer.object("target") { writer in
                writer.member("namespace", "android_app")
                writer.member("package_name", app.package)
                writer.array("sha256_cert_fingerprints") { writer in
                    for fingerprint in app.fingerprints { writer.string(fingerprint) }
                }
            }
        }
    }
}
