internal import HTTPCore

/// `GET /s/{id}` and `GET /s/{id}/{passphrase}`: the page that opens shares, in the language that the browser wants.
///
/// Nobody looks at the id or at the passphrase, so a link preview uses up nothing and learns nothing. The second form is
/// that of older apps; the page's script turns it into the first. Either may end in a slash, which mail programs add.
struct ShowSharePage: OpenEndpoint {
    private let pages: [PageLanguage: Response]

    init(_ page: BrowserPage) { pages = page.pages }

    func respond(to request: Request) async throws -> Response {
        guard let page = pages[PageLanguage(preferredIn: request.head.fields)] else { throw Problem.notFound }
        return page
    }
}
