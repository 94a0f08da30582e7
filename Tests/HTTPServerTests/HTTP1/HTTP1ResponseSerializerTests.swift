import HTTPCore
import HTTPServer
import Testing

@Suite struct HTTP1ResponseSerializerTests {
    private let date = HTTPDate(secondsSinceEpoch: 784_111_777)

    private func text(_ response: Response, _ serializer: HTTP1ResponseSerializer = HTTP1ResponseSerializer()) -> String
    {
        var output = Array("before ".utf8)
        serializer.append(response, date: date, to: &output)
        return String(String(decoding: output, as: UTF8.self).dropFirst(7))
    }

    @Test func `a response is status line, fields and body`() {
        let response = Response(
            status: .created, fields: ["Content-Type": "application/json", "ETag": "\"7\""],
            body: .bytes(ZeroizingBuffer("{}".utf8)))
        #expect(
            text(response) == """
                HTTP/1.1 201 Created\r
                Date: Sun, 06 Nov 1994 08:49:37 GMT\r
                Content-Type: application/json\r
                ETag: "7"\r
                Content-Length: 2\r
                \r
                {}
                """)
    }

    @Test func `a response to HEAD that was made without a body says nothing of a length`() {
        let head = text(Response(status: .ok), HTTP1ResponseSerializer(answersHead: true))
        #expect(!head.contains("Content-Length"))
        #expect(!head.contains("Transfer-Encoding"))
        #expect(text(Response(status: .ok), HTTP1ResponseSerializer()).contains("Content-Length: 0"))
    }

    @Test func `a response to HEAD has the length of the body and no body`() {
        let response = Response(status: .ok, body: .bytes(ZeroizingBuffer("12345".utf8)))
        let head = text(response, HTTP1ResponseSerializer(answersHead: true))
        #expect(head.hasSuffix("Content-Length: 5\r\n\r\n"))
        #expect(HTTP1ResponseSerializer(answersHead: true).body(of: response) == nil)
    }

    @Test(arguments: [HTTPStatus.noContent, .notModified])
    func `some statuses never have a body or a length`(_ status: HTTPStatus) {
        let response = Response(status: status, body: .bytes([1, 2, 3]))
        #expect(text(response) == "HTTP/1.1 \(status)\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n")
    }

    @Test func `a response without a body says so`() {
        #expect(text(Response(status: .ok)).hasSuffix("Content-Length: 0\r\n\r\n"))
    }

    @Test func `the time for which the connection stays open is announced when it does`() {
        let response = Response(status: .ok)
        let open = text(response, HTTP1ResponseSerializer(keepAliveSeconds: 75))
        #expect(open.contains("\r\nConnection: keep-alive\r\nKeep-Alive: timeout=75\r\n"))
        let closing = text(response, HTTP1ResponseSerializer(closes: true, keepAliveSeconds: 75))
        #expect(closing.contains("\r\nConnection: close\r\n") && !closing.contains("Keep-Alive"))
    }

    @Test func `the client is told whether the connection stays open when it could not know`() {
        let response = Response(status: .ok)
        #expect(!text(response).contains("Connection"))
        #expect(text(response, HTTP1ResponseSerializer(closes: true)).contains("\r\nConnection: close\r\n"))
        let old = HTTP1ResponseSerializer(versionMinor: 0)
        #expect(text(response, old).contains("\r\nConnection: keep-alive\r\n"))
        #expect(
            text(response, HTTP1ResponseSerializer(closes: true, versionMinor: 0)).contains("\r\nConnection: close\r\n")
        )
    }

    @Test func `fields of the connection come from the connection alone`() {
        var response = Response(status: .ok, body: .bytes([0x61]))
        for name in [
            "content-length", "Transfer-Encoding", "CONNECTION", "Keep-Alive", "Date", "Upgrade", "Trailer",
        ] {
            response.fields.append(name, "100")
        }
        #expect(
            text(response)
                == "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 1\r\n\r\na")
    }

    @Test func `a value cannot begin another line`() {
        let response = Response(status: .ok, fields: ["X": "a\r\nSet-Cookie: b\u{0}\n\r\nc\u{7F}"])
        #expect(text(response).contains("\r\nX: a  Set-Cookie: b    c \r\n"))
    }

    @Test func `the interim response is complete`() {
        #expect(
            String(decoding: HTTP1ResponseSerializer.continueResponse, as: UTF8.self) == "HTTP/1.1 100 Continue\r\n\r\n"
        )
    }

    @Test(arguments: [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
        (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
        (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
    ])
    func `a date has the fixed form`(seconds: Int, text: String) {
        #expect(String(decoding: HTTPDate(secondsSinceEpoch: seconds).bytes, as: UTF8.self) == text)
    }
}
