import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SharePageTests {
    private static let page = BrowserPage(service: "Test", banner: nil)

    @Test func `the page is the same for every share, and for none`() async throws {
        try await TestApplication.with { app in
            let page = try await app.client.get("/s/4vP1q0bXcT7mK9sLw2RzYd")
            #expect(page.status == 200)
            #expect(page.fields["Content-Type"] == "text/html; charset=utf-8")
            #expect(page.text.contains("<html lang=\"en\">"))
            let others = [
                "/s/0", "/s/nonsense%20", "/s/4vP1q0bXcT7mK9sLw2RzYd/passphrase-canary",
                "/s/4vP1q0bXcT7mK9sLw2RzYd?fbclid=1&fbclid=2&%zz", "/s/4vP1q0bXcT7mK9sLw2RzYd/",
                "/s/4vP1q0bXcT7mK9sLw2RzYd/passphrase-canary/", "/s/4vP1q0bXcT7mK9sLw2RzYd/?utm_source=mail",
            ]
            for path in others {
                let other = try await app.client.get(path)
                #expect(other.status == 200)
                #expect(other.body == page.body, "\(path)")
            }
            #expect(try await app.client.send(.head, "/s/0").status == 200)
            for path in ["/s", "/s/", "/s/a/b/c", "/s/a/b/c/", "/s/a//", "/s//"] {
                #expect(try await app.client.get(path).status == 404, "\(path)")
            }
            for line in app.log.lines { #expect(!line.contains("canary") && !line.contains("4vP1q0"), "\(line)") }
            #expect(app.log.lines.contains { $0.contains(#""route":"GET /s/{id}/{passphrase}""#) })
        }
    }

    @Test func `the page for invitations is the same for all, has no script, and requests nothing`() async throws {
        try await TestApplication.with { app in
            let page = try await app.client.get("/j/4vP1q0bXcT7mK9sLw2RzYd")
            #expect(page.status == 200)
            #expect(page.fields["Content-Type"] == "text/html; charset=utf-8")
            #expect(
                page.fields["Content-Security-Policy"]
                    == "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
                    + "frame-ancestors 'none'")
            let shares = try await app.client.get("/s/4vP1q0bXcT7mK9sLw2RzYd").fields
            for name in ["Referrer-Policy", "X-Robots-Tag", "Cache-Control", "Permissions-Policy"] {
                #expect(page.fields[name] != nil && page.fields[name] == shares[name], "\(name)")
            }
            #expect(!page.text.contains("<script") && !page.text.contains("{{"))
            #expect(page.text.contains("saltern-client vault join"))
            for match in page.text.matches(of: /(?:src|href)="([^"]*)"/) {
                #expect(try await app.client.get(String(match.1)).status == 200, "\(match.1)")
            }
            try await app.closeDatabase()
            for path in ["/j/0", "/j/nonsense%20", "/j/4vP1q0bXcT7mK9sLw2RzYd/", "/j/0?utm_source=mail&utm_source=x"] {
                let other = try await app.client.get(path)
                #expect(other.status == 200 && other.body == page.body, "\(path)")
            }
            try await app.openDatabase()
            let german = try await app.client.get("/j/0", ["Accept-Language": "de"])
            #expect(german.text.contains("Einladung in einen gemeinsamen Tresor"))
            for path in ["/j", "/j/", "/j/a/b"] { #expect(try await app.client.get(path).status == 404, "\(path)") }
            for line in app.log.lines { #expect(!line.contains("4vP1q0"), "\(line)") }
        }
    }

    @Test func `the page asks nothing of the database`() async throws {
        try await TestApplication.with { app in
            try await app.closeDatabase()
            #expect(try await app.client.get("/s/0").status == 200)
            #expect(try await app.client.get("/assets/share.js").status == 200)
            try await app.openDatabase()
        }
    }

    @Test func `the page may load from this server, talk to it, and nothing else`() async throws {
        try await TestApplication.with { app in
            let fields = try await app.client.get("/s/0").fields
            #expect(
                fields["Content-Security-Policy"]
                    == "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                    + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                    + "require-trusted-types-for 'script'; trusted-types 'none'")
            #expect(fields["Referrer-Policy"] == "no-referrer")
            #expect(fields["X-Robots-Tag"] == "noindex, nofollow, noarchive")
            #expect(fields["Cross-Origin-Opener-Policy"] == "same-origin")
            #expect(fields["Cross-Origin-Resource-Policy"] == "same-origin")
            #expect(fields["Cache-Control"] == "no-store, no-transform")
            #expect(fields["Permissions-Policy"]?.contains("clipboard-write=(self)") == true)
        }
    }

    @Test func `everything the page loads is there, in its type, and all of it is small`() async throws {
        try await TestApplication.with { app in
            let page = try await app.client.get("/s/0")
            var loaded = page.text.matches(of: /(?:src|href)="([^"]*)"/).map { String($0.1) }
            #expect(loaded.contains("/assets/share.js"))
            var size = page.body.count
            var seen: Set<String> = []
            while let path = loaded.popLast() {
                guard seen.insert(path).inserted else { continue }
                let asset = try await app.client.get(path)
                #expect(asset.status == 200, "\(path)")
                let type = [
                    "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml",
                ][path.split(separator: ".").last.map(String.init) ?? ""]
                #expect(asset.fields["Content-Type"] == type)
                #expect(asset.fields["Cross-Origin-Resource-Policy"] == "same-origin")
                size += asset.body.count
                loaded += asset.text.matches(of: /from "\.\/([a-z]+\.js)"/).map { "/assets/\($0.1)" }
                #expect(!asset.text.contains("innerHTML"))
                #expect(!asset.text.contains("//www.") || path.hasSuffix(".svg"))
            }
            #expect(seen.count == Self.page.assets.count)
            #expect(size < 60_000)
            #expect(try await app.client.get("/assets/share.html").status == 404)
            #expect(try await app.client.get("/assets/share.js?v=1").status == 400)
        }
    }

    @Test(arguments: [
        (nil, "en"), ("de", "de"), ("DE-at", "de"), ("de-DE,de;q=0.9,en;q=0.8", "de"),
        ("en-GB,en;q=0.9,de;q=0.8", "en"),
        ("fr", "en"), ("fr,de;q=0.5", "de"), ("de;q=0.5,en;q=0.7", "en"), ("de;q=0", "en"), ("*", "en"), ("", "en"),
        ("de ; q=0.9 , en;q=0.8", "de"), ("de;q=x,en;q=0.1", "en"), (",,;;q=1,-,de", "de"), ("deutsch", "en"),
        ("de,en", "de"),
    ])
    func `the language is the one that is wanted most`(list: String?, language: String) async throws {
        let fields = list.map { [(name: "Accept-Language", value: $0)] } ?? []
        let head = RequestHead(method: .get, target: "/s/0", fields: fields)
        #expect(PageLanguage(preferredIn: head.fields).rawValue == language)
    }

    @Test func `the reply says which language it has, and that it depends on the request`() async throws {
        try await TestApplication.with { app in
            let page = try await app.client.get("/s/0", ["Accept-Language": "de"])
            #expect(page.fields["Content-Language"] == "de")
            #expect(page.fields["Vary"] == "Accept-Language")
            #expect(page.text.contains("<html lang=\"de\">"))
            #expect(page.text.contains("Diese Seite braucht JavaScript"))
        }
    }

    @Test func `the strings that the script knows are those that it uses`() throws {
        let used = ["view_js", "share_js"].map { name in
            String(decoding: name == "view_js" ? PackageResources.view_js : PackageResources.share_js, as: UTF8.self)
        }.joined()
        let document = try JSONParser().parse(PackageResources.strings_json)
        guard case .object(let all) = document, case .object(let script) = all["script"] else {
            Issue.record("strings.json has no member script")
            return
        }
        for name in script.members.map(\.name.string) {
            let stem = ["Title", "Text", "None", "One", "Many"].first(where: name.hasSuffix).map {
                String(name.dropLast($0.count))
            }
            #expect(
                used.contains("\"\(name)\"") || stem.map { used.contains("\"\($0)\"") } == true, "nobody says \(name)")
        }
        // The other way round: what is asked for by name is there.
        for match in used.matches(of: /string\("([a-zA-Z]+)"|button: "([a-zA-Z]+)"|showBusy\("([a-zA-Z]+)"\)/) {
            let name = String(match.1 ?? match.2 ?? match.3 ?? "")
            #expect(script[name] != nil, "there is no string \(name)")
        }
    }

    @Test func `the name of the service is text, whatever it is made of`() throws {
        let page = BrowserPage(service: #"<script>"&'{{title}}"#, banner: nil)
        guard case .bytes(let bytes) = page.pages[.english]?.body else {
            Issue.record("the page is bytes")
            return
        }
        let html = String(decoding: bytes, as: UTF8.self)
        #expect(html.contains("&lt;script&gt;&quot;&amp;&#39;{{title}}</title>"))
        #expect(!html.contains("<script>\""))
    }

    @Test func `Safari is told of the app in the App Store, and of no address`() async throws {
        var configuration = TestApplication.configuration
        configuration.appLinks.appStoreID = AppStoreID("123456789")
        try await TestApplication.with(configuration) { app in
            let text = try await app.client.get("/s/0").text
            #expect(text.contains(#"<meta name="apple-itunes-app" content="app-id=123456789">"#))
            #expect(!text.contains("app-argument"))
        }
        #expect(!String(describing: Self.page.pages).contains("apple-itunes-app"))
    }
}
