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
