internal import HTTPCore

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
