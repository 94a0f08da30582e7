internal import HTTPCore

/// `GET /s/{id}` and `GET /s/{id}/{passphrase}`: returns the page that opens shares, in the browser's language.
///
/// Id and passphrase are not read, so link previews use up no view and receive no data. The second form is that of
/// older apps; the page's script converts it. Either may end in a slash, which mail programs add.
struct ShowSharePage: OpenEndpoint {
    private let pages: [PageLanguage: Response]

    init(_ page: BrowserPage) { pages = page.pages }

    /// `GET /j/{id}`: returns the page for links to invitations instead. The id is not read either.
    init(invitationsOf page: BrowserPage) { pages = page.invitationPages }

    func respond(to request: Request) async throws -> Response {
        guard let page = pages[PageLanguage(preferredIn: request.head.fields)] else { throw Problem.notFound }
        return page
    }
}
