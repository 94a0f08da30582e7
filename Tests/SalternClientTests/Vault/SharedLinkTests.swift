import Cryptography
import Foundation
import Synchronization
import Testing

@testable import SalternClient

@Suite struct ShareAddressTests {
    private static let id = "0123456789abcdefABCDEF"

    @Test(arguments: [
        ("https://example.org/s/\(id)#KEYkey", "https://example.org", "KEYkey"),
        ("  https://example.org/s/\(id)#KEYkey \r\n", "https://example.org", "KEYkey"),
        ("\u{feff}https://example.org/s/\(id)#KEYkey\u{a0}", "https://example.org", "KEYkey"),
        ("https://example.org/s/\(id)#KEYkey%20", "https://example.org", "KEYkey"),
        ("HTTPS://Example.ORG:443/s/\(id)/#KEYkey", "https://example.org", "KEYkey"),
        ("https://example.org:8443/s/\(id)?from=mail#K%C3%A4se", "https://example.org:8443", "Käse"),
        ("https://[2001:DB8::1]:8443/s/\(id)#KEYkey", "https://[2001:db8::1]:8443", "KEYkey"),
        ("https://example.org/s/\(id)/KEYkey", "https://example.org", "KEYkey"),
        ("https://example.org/s/\(id)#100%", "https://example.org", "100%"),
    ])
    func `a link is read as people paste it`(_ link: (text: String, server: String, key: String)) throws {
        let address = try ShareAddress(link.text)
        #expect(address.server == link.server)
        #expect(address.id == Self.id)
        #expect(address.keys.first == SecureBytes(copying: link.key.utf8))
    }

    @Test(arguments: [
        ("", ShareAddress.Malformation.notALink), ("example.org/s/\(id)#KEY", .notALink),
        ("http://example.org/s/\(id)#KEY", .notALink), ("https:///s/\(id)#KEY", .notALink),
        ("https://user@example.org/s/\(id)#KEY", .notALink), ("https://example.org/t/\(id)#KEY", .notALink),
        ("https://example.org/s/#KEY", .notALink), ("https://example.org/s/a%2fb#KEY", .notALink),
        ("https://example.org:70000/s/\(id)#KEY", .notALink), ("https://example.org/s/\(id)", .noKey),
        ("https://example.org/s/\(id)#", .noKey), ("https://example.org/s/\(id)# \n", .noKey),
        ("https://example.org/s/\(id)#%20", .noKey), ("https://example.org/s/\(id)/", .noKey),
        ("https://example.org/s/\(id)#KEY key", .brokenKey), ("https://example.org/s/\(id)#KEY\nkey", .brokenKey),
    ])
    func `what cannot open anything is refused`(_ link: (text: String, reason: ShareAddress.Malformation)) {
        #expect(throws: link.reason) { try ShareAddress(link.text) }
    }

    @Test func `codes are read as people paste them`() throws {
        let code = RecoveryCode.random()
        let spaced = code.text.replacing("-", with: "\u{2013}\u{a0}")
        #expect(RecoveryCode("\u{200b} \(spaced)\t\u{2028}")?.text == code.text)
        let wide = String(
            String.UnicodeScalarView(code.text.unicodeScalars.compactMap { Unicode.Scalar($0.value + 0xfee0) }))
        #expect(RecoveryCode(wide)?.text == code.text)
        #expect(try PastedText.oneTimeCode("\u{a0}１２３ ٤٥٦\u{2011}\n") == "123456")
        #expect(throws: VaultError.self) { try PastedText.oneTimeCode("\u{a0} \n") }
    }
}

@Suite struct FetchedShareTests {
    @Test func `a wrong key costs no second view: what was fetched takes another one`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let vault = try await Vault.signUp(device.settings, userid: "ada", password: Password("correct horse"))
            let base = try #require(URL(string: server.base))
            let payload = SecureBytes(copying: Array("once".utf8))
            let link = try await vault.share(payload, base: base, maxViews: 1)
            let transport = try CurlTransport(server.address())
            let right = try ShareAddress(link.url.absoluteString)
            let wrong = try ShareAddress(link.url.absoluteString + "x")
            #expect(try await SharedLink.viewsLeft(wrong, over: transport) == 1)
            let share = try await SharedLink.fetch(wrong, over: transport)
            #expect(throws: VaultError.self) { try share.open(wrong) }
            // As it comes back from a disk.
            let kept = try JSONDecoder().decode(FetchedShare.self, from: JSONEncoder().encode(share))
            #expect(try kept.open(right) == payload)
            #expect(try kept.open(" \(link.url.absoluteString)\n") == payload)
            #expect(try kept.open(String(try #require(link.url.fragment())) + " ") == payload)
            await #expect { try await SharedLink.viewsLeft(right, over: transport) } throws: { error in
                if case VaultError.notFound = error { true } else { false }
            }
        }
    }

    @Test func `a text is shared as its UTF-8`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let vault = try await Vault.signUp(device.settings, userid: "ada", password: Password("correct horse"))
            let base = try #require(URL(string: server.base))
            let link = try await vault.share(text: "Käse", base: base, expiresAt: Date() + 86_400, maxViews: 2)
            #expect(try await String(vault.open(link.url)) == "Käse")
            let share = try #require(try await vault.shares().first)
            #expect(share.id == link.id && share.maxViews == 2 && share.expiresAt != nil)
        }
    }

    @Test func `the simple call hands out what it has fetched with its error`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let vault = try await Vault.signUp(device.settings, userid: "ada", password: Password("correct horse"))
            let base = try #require(URL(string: server.base))
            let payload = SecureBytes(copying: Array("once".utf8))
            let link = try await vault.share(payload, base: base, maxViews: 1)
            do {
                _ = try await vault.open(try #require(URL(string: link.url.absoluteString + "x")))
                Issue.record("the wrong key opened it")
            } catch VaultError.wrongShareKey(let share) {
                #expect(try share.open(link.url.absoluteString) == payload)
            }
        }
    }

    @Test func `a link without a key asks for nothing`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let vault = try await Vault.signUp(device.settings, userid: "ada", password: Password("correct horse"))
            let link = try await vault.share(
                SecureBytes(copying: [1]), base: try #require(URL(string: server.base)), maxViews: 1)
            let count = Mutex(0)
            device.link.setAnswer { _ in
                count.withLock { $0 += 1 }
                return nil
            }
            for end in ["", "#", "#%20"] {
                let text = link.url.absoluteString.prefix { $0 != "#" } + end
                await #expect(throws: VaultError.self) { try await vault.open(try #require(URL(string: String(text)))) }
            }
            #expect(count.withLock { $0 } == 0)
        }
    }

    @Test func `a link leads to the server that was named, and never where a server's path wants`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let vault = try await Vault.signUp(device.settings, userid: "ada", password: Password("correct horse"))
            let base = try #require(URL(string: "https://LOCALHOST:443/"))
            device.link.setRewrite { request, reply in
                guard request.target == "/v1/shares" else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self).replacing("\"/s/", with: "\"@evil.example/s/")
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            let link = try await vault.share(SecureBytes(copying: [1]), base: base)
            #expect(link.url.absoluteString.hasPrefix("https://localhost/s/\(link.id)#"))
            device.link.setRewrite { request, reply in
                guard request.target == "/v1/shares" else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self).replacing("\"id\":\"", with: "\"id\":\"../")
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            await #expect(throws: VaultError.self) { try await vault.share(SecureBytes(copying: [1]), base: base) }
        }
    }
}
