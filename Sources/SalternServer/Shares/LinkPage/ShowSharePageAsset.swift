internal import HTTPCore

/// `GET /assets/{name}`: a file that the page of shares is made of.
///
/// It is not cached, like everything that this server says: page and script are always of one version, and a few KiB once a
/// share are no burden.
struct ShowSharePageAsset: OpenEndpoint {
    private let assets: [String: Response]

    init(_ page: BrowserPage) { assets = page.assets }

    func respond(to request: Request) async throws -> Response {
        let name: String = try request.parameters.require("name")
        guard let asset = assets[name] else { throw Problem.notFound }
        return asset
    }
}
