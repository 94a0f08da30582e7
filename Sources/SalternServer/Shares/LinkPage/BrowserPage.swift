internal import HTTPCore

/// The pages for links to shares and invitations, and their files. All of them are constant and written once.
///
/// The page that opens shares is the same for all of them. The browser takes the id from its address, fetches the share
/// from the API, and opens it with the key from the link.
struct BrowserPage: Sendable {
    /// The page in each language.
    let pages: [PageLanguage: Response]
    /// The page for links to invitations in each language. It has no script, and requests nothing of the invitation:
    /// messengers open links for previews.
    let invitationPages: [PageLanguage: Response]
    /// The files that the pages load, by name.
    let assets: [String: Response]

    /// - Parameters:
    ///   - service: The service's name.
    ///   - banner: The operator's app in the App Store, if any.
    init(service: String, banner: AppStoreID?) {
        let template = PageTemplate(PackageResources.share_html)
        let strings = PageStrings(PackageResources.strings_json)
        pages = Dictionary(
            uniqueKeysWithValues: PageLanguage.allCases.map { language in
                var values = strings.page(in: language)
                values["language"] = HTML(escaping: language.rawValue)
                values["service"] = HTML(escaping: service)
                values["banner"] = banner.map(Self.meta) ?? HTML(markup: "")
                values["strings"] = strings.script(in: language)
                return (
                    language,
                    Self.response(template.filled(with: values), in: language, policy: Self.contentSecurityPolicy)
                )
            })
        invitationPages = Self.invitation(service: service, banner: banner)
        assets = [
            "share.js": Self.asset(PackageResources.share_js, .javaScript),
            "link.js": Self.asset(PackageResources.link_js, .javaScript),
            // A link to clients/web, so that this page and those of apps open shares by the same code.
            "saltern.js": Self.asset(PackageResources.saltern_js, .javaScript),
            "content.js": Self.asset(PackageResources.content_js, .javaScript),
            "view.js": Self.asset(PackageResources.view_js, .javaScript),
            "outdated.js": Self.asset(PackageResources.outdated_js, .javaScript),
            "share.css": Self.asset(PackageResources.share_css, .css),
            "share.svg": Self.asset(PackageResources.share_svg, .svg),
        ]
    }

    /// Restricts the page to scripts, files and connections of this server. Trusted types keep strings from becoming
    /// markup.
    static let contentSecurityPolicy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ].joined(separator: "; ")

    /// As ``contentSecurityPolicy``, without scripts and connections.
    static let scriptlessPolicy = [
        "default-src 'none'", "style-src 'self'", "img-src 'self'", "base-uri 'none'", "form-action 'none'",
        "frame-ancestors 'none'",
    ].joined(separator: "; ")

    private static func invitation(service: String, banner: AppStoreID?) -> [PageLanguage: Response] {
        let template = PageTemplate(PackageResources.invitation_html)
        let strings = PageStrings(PackageResources.invitation_json)
        return Dictionary(
            uniqueKeysWithValues: PageLanguage.allCases.map { language in
                var values = strings.page(in: language)
                values["language"] = HTML(escaping: language.rawValue)
                values["service"] = HTML(escaping: service)
                values["banner"] = banner.map(Self.meta) ?? HTML(markup: "")
                return (
                    language, Self.response(template.filled(with: values), in: language, policy: scriptlessPolicy)
                )
            })
    }

    private static func response(_ page: [UInt8], in language: PageLanguage, policy: String) -> Response {
        let fields: HTTPFields = [
            "Content-Type": "text/html; charset=utf-8", "Content-Language": language.rawValue,
            "Vary": "Accept-Language", "Content-Security-Policy": policy,
            "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow, noarchive",
            "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "camera=(), clipboard-read=(), clipboard-write=(self), display-capture=(), "
                + "geolocation=(), microphone=(), payment=(), usb=()",
        ]
        return Response(status: .ok, fields: fields, body: .bytes(ZeroizingBuffer(page)))
    }

    private enum AssetType: String {
        case javaScript = "text/javascript; charset=utf-8"
        case css = "text/css; charset=utf-8"
        case svg = "image/svg+xml"
    }

    private static func asset(_ bytes: [UInt8], _ type: AssetType) -> Response {
        let fields: HTTPFields = [
            "Content-Type": type.rawValue, "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
            "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex", "Cross-Origin-Resource-Policy": "same-origin",
        ]
        return Response(status: .ok, fields: fields, body: .bytes(ZeroizingBuffer(bytes)))
    }

    /// Safari's smart banner. Without `app-argument`, so that the page passes no address on, whose fragment is a key.
    private static func meta(_ id: AppStoreID) -> HTML {
        HTML(markup: "<meta name=\"apple-itunes-app\" content=\"app-id=\(id)\">\n")
    }
}

/// A language of the page.
enum PageLanguage: String, Sendable, CaseIterable {
    case english = "en"
    case german = "de"
}

/// All strings of the page in all languages: `{"page": {name: {language: text}}, "script": {…}}`. Strings of `page` are
/// in the HTML; the script shows those of `script`.
struct PageStrings: Sendable {
    private let document: JSONValue

    /// Reads the strings from a file of the program. Any other form is a programming error.
    init(_ bytes: [UInt8]) {
        document = (try? JSONParser().parse(bytes)) ?? .null
        precondition(!texts("page", .english).isEmpty, "the strings of the page are JSON")
    }

    /// Returns the strings of the HTML.
    func page(in language: PageLanguage) -> [String: HTML] {
        Dictionary(uniqueKeysWithValues: texts("page", language).map { ($0.name, HTML(escaping: $0.text)) })
    }

    /// Returns the script's strings as JSON for a `script` element, with `<` escaped, because only that could end the
    /// element.
    func script(in language: PageLanguage) -> HTML {
        var writer = JSONWriter(capacity: 8_192)
        writer.object { writer in
            for (name, text) in texts("script", language) { writer.member(name, text) }
        }
        return HTML(markup: String(decoding: writer.finish(), as: UTF8.self).replacing("<", with: "\\u003C"))
    }

    private func texts(_ part: String, _ language: PageLanguage) -> [(name: String, text: String)] {
        guard case .object(let all) = document, case .object(let strings) = all[part] else { return [] }
        return strings.members.map { member in
            guard case .object(let texts) = member.value, case .string(let text) = texts[language.rawValue] else {
                preconditionFailure("\(member.name.string) has a text in \(language.rawValue)")
            }
            return (member.name.string, text.string)
        }
    }
}

extension PageLanguage {
    /// Selects the preferred language of `Accept-Language` (RFC 9110 §12.5.4, by lookup: `de-AT` selects `de`), and the
    /// first one of equal preference. English if there is none, and for a malformed field.
    init(preferredIn fields: RequestFields) {
        self = fields["accept-language"].flatMap(Self.preferred) ?? .english
    }

    private static func preferred(in list: String) -> PageLanguage? {
        var best: (language: PageLanguage, weight: Double)?
        for element in list.split(separator: ",") {
            let parts = element.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
            guard let range = parts.first, let language = language(of: range) else { continue }
            let weight = parts.dropFirst().first { $0.lowercased().hasPrefix("q=") }.map {
                Double($0.dropFirst(2)) ?? 0
            }
            if (weight ?? 1) > best?.weight ?? 0 { best = (language, weight ?? 1) }
        }
        return best?.language
    }

    /// Returns the language of a range by its first subtag.
    private static func language(of range: String) -> PageLanguage? {
        range.split(separator: "-").first.flatMap { PageLanguage(rawValue: $0.lowercased()) }
    }
}

/// Text in HTML.
struct HTML: Sendable, Equatable {
    let markup: String

    /// Accepts markup of the program itself.
    init(markup: String) { self.markup = markup }

    /// Escapes text for use between tags and in quoted attributes.
    init(escaping text: String) {
        var markup = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": markup += "&amp;"
            case "<": markup += "&lt;"
            case ">": markup += "&gt;"
            case "\"": markup += "&quot;"
            case "'": markup += "&#39;"
            default: markup.unicodeScalars.append(character)
            }
        }
        self.markup = markup
    }
}

/// A page with placeholders of the form `{{name}}`.
struct PageTemplate: Sendable {
    /// The text before each placeholder, and its name.
    private let parts: [(text: String, place: String)]
    private let end: String

    /// Reads a template from a file of the program.
    init(_ bytes: [UInt8]) {
        var parts: [(text: String, place: String)] = []
        var rest = String(decoding: bytes, as: UTF8.self)[...]
        while let start = rest.firstRange(of: "{{"), let end = rest[start.upperBound...].firstRange(of: "}}") {
            parts.append((String(rest[..<start.lowerBound]), String(rest[start.upperBound..<end.lowerBound])))
            rest = rest[end.upperBound...]
        }
        self.parts = parts
        self.end = String(rest)
    }

    /// Returns the page. A placeholder without a value, or a value without a placeholder, is a programming error.
    func filled(with values: [String: HTML]) -> [UInt8] {
        precondition(Set(parts.map(\.place)) == Set(values.keys), "every place of the page has a value")
        var page = ""
        for part in parts { page += part.text + (values[part.place]?.markup ?? "") }
        return Array((page + end).utf8)
    }
}

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
