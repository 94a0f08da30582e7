import HTTPCore
import Testing

@testable import HTTPServer

/// The part of a refused head that decides which page may read the refusal.
@Suite struct UnreadHeadTests {
    private func unread(_ text: String, _ limits: HTTP1Limits = HTTP1Limits()) -> UnreadHead? {
        var parser = HTTP1RequestParser(limits: limits)
        parser.append(Array(text.utf8))
        _ = try? parser.next()
        return parser.unreadHead
    }

    @Test func `path and origin are found wherever the error is`() {
        for wrong in ["Bad Field: x\r\n", "X: \u{1}\r\n", "Content-Length: x\r\n", " folded\r\n"] {
            for head in [
                "GET /v1/account?x=1 HTTP/1.1\r\n\(wrong)Host: a\r\nOrigin: https://a.example\r\n\r\n",
                "GET /v1/account?x=1 HTTP/1.1\r\nhost: a\r\norigin:https://a.example \r\n\(wrong)\r\n",
            ] {
                let found = unread(head)
                #expect(found?.path == "/v1/account", "\(head)")
                #expect(found?.origin == "https://a.example", "\(head)")
            }
        }
    }

    @Test func `a head that is too long or has not ended is searched as far as it has come`() {
        let long =
            "GET /v1/x HTTP/1.1\r\nOrigin: https://a.example\r\nX: \(String(repeating: "x", count: 20_000))\r\n\r\n"
        #expect(unread(long)?.origin == "https://a.example")
        #expect(unread("GET /v1/x HTTP/1.1\r\nOrigin: https://a.example\r\nX: y")?.origin == "https://a.example")
        #expect(unread("GET /v1/x HTTP/1.1\r\nHost: a")?.origin == nil)
        #expect(unread("GET /v1/x HTTP/1.1\r\nHost: a")?.path == "/v1/x")
    }

    @Test func `two origins are none, and bytes that are no request have no path`() {
        let two = "GET /v1/x HTTP/1.1\r\nOrigin: https://a.example\r\nOrigin: https://b.example\r\nX Y: z\r\n\r\n"
        #expect(unread(two)?.path == "/v1/x")
        #expect(unread(two)?.origin == nil)
        for text in ["", "\r\n", "x", "GET", "\u{16}\u{3}\u{1}", "GET x HTTP/1.1\r\n\r\n", "\n\n\n"] {
            #expect(unread(text) == nil, "\(text)")
        }
    }
}
