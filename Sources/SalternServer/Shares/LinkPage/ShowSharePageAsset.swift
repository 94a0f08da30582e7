internal import HTTPCore

/// `GET /assets/{name}`: returns a file of the page.
///
/// Like all replies it is not cached, so page and script always have one version. 60 KiB for each share are acceptable.
struct ShowSharePageAsset: OpenEndpoint {
    private let assets: [String: Response]

    init(_ page: BrowserPage) { assets = page.assets }

    func respond(to request: Request) async throws -> Response {
        let name: String = try request.parameters.require("name")
        guard let asset = assets[name] else { throw Problem.notFound }
        return asset
    }
}
