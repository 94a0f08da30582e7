internal import HTTPCore

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
