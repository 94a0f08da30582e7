import HTTPCore
import HTTPServer
import Testing

@Suite struct HTTP1LimitsTests {
    private static func request(target: String = "/", fields: String = "", body: String = "") -> String {
        "GET \(target) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\(body)"
    }

    @Test func `a request line may have as many bytes as the limit and no more`() {
        // "GET ", " HTTP/1.1" and CRLF are 15 bytes.
        let longest = "/" + String(repeating: "a", count: 8192 - 16)
        #expect(ParsedRequests(Self.request(target: longest)).outcome == "accepted")
        #expect(ParsedRequests(Self.request(target: longest + "a")).error == .requestLineTooLong(limit: 8192))
        #expect(ParsedRequests("GET " + longest + "aaaaaaaaaaa").error == .requestLineTooLong(limit: 8192))
        #expect(ParsedRequests("GET " + longest).outcome == "incomplete")
    }

    @Test func `a header block may have as many bytes as the limit and no more`() {
        let longest = String(repeating: "b", count: 16_384 - Self.request(fields: "X: \r\n").utf8.count)
        #expect(ParsedRequests(Self.request(fields: "X: \(longest)\r\n")).outcome == "accepted")
        let error = HTTP1Error.headerTooLarge(limit: 16_384)
        #expect(ParsedRequests(Self.request(fields: "X: \(longest)b\r\n")).error == error)
        #expect(ParsedRequests("GET / HTTP/1.1\r\nX: \(longest)bbbbbbbbbbbbbbbbbbb").error == error)
        #expect(error.refusal.problem.status == .requestHeaderFieldsTooLarge)
    }

    @Test func `a limit is reached at the same byte however the bytes arrive`() {
        var limits = HTTP1Limits()
        limits.requestLine = 40
        limits.header = 80
        for length in 0..<90 {
            for text in [
                Self.request(target: "/" + String(repeating: "a", count: length)),
                Self.request(fields: "X: " + String(repeating: "a", count: length) + "\r\n"),
            ] {
                let whole = ParsedRequests(text, limits: limits)
                #expect(ParsedRequests(pieces: text.utf8.map { [$0] }, limits: limits) == whole, "\(length)")
            }
        }
    }

    @Test func `a head has at most a hundred fields`() {
        let fields = String(repeating: "X: y\r\n", count: 99)
        #expect(ParsedRequests(Self.request(fields: fields)).outcome == "accepted")
        #expect(ParsedRequests(Self.request(fields: fields + "X: y\r\n")).error == .tooManyFields(limit: 100))
    }

    @Test func `a trailer section has the limits of a head`() {
        func trailer(_ fields: String) -> ParsedRequests {
            ParsedRequests(Self.request(fields: "Transfer-Encoding: chunked\r\n", body: "0\r\n\(fields)\r\n"))
        }
        let fields = String(repeating: "X: y\r\n", count: 100)
        #expect(trailer(fields).outcome == "accepted")
        #expect(trailer(fields + "X: y\r\n").error == .tooManyFields(limit: 100))
        #expect(trailer("X: \(String(repeating: "a", count: 16_377))\r\n").outcome == "accepted")
        #expect(trailer("X: \(String(repeating: "a", count: 16_378))\r\n").error == .headerTooLarge(limit: 16_384))
    }

    @Test func `all chunk extensions of a body together are limited`() {
        func chunked(_ count: Int) -> ParsedRequests {
            let chunk = "1;\(String(repeating: "e", count: 127))\r\nx\r\n"
            return ParsedRequests(
                Self.request(
                    fields: "Transfer-Encoding: chunked\r\n",
                    body: String(repeating: chunk, count: count) + "0\r\n\r\n"))
        }
        #expect(chunked(32).outcome == "accepted")
        #expect(chunked(33).error == .syntax(.malformedChunk))
    }

    @Test func `a body of known length above the limit is refused before a byte of it is read`() {
        let text = Self.request(fields: "Content-Length: 11\r\n", body: "hello world")
        #expect(ParsedRequests(text, bodyLimit: 11).outcome == "accepted")
        let refused = ParsedRequests(text, bodyLimit: 10)
        #expect(refused.error == .bodyTooLarge(limit: 10))
        #expect(refused.requests.map(\.body) == [[]])
    }

    @Test func `a chunk that would exceed the limit is refused before a byte of it is read`() {
        let text = Self.request(
            fields: "Transfer-Encoding: chunked\r\n", body: "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
        #expect(ParsedRequests(text, bodyLimit: 11).outcome == "accepted")
        let refused = ParsedRequests(text, bodyLimit: 10)
        #expect(refused.error == .bodyTooLarge(limit: 10))
        #expect(refused.requests.map(\.body) == [Array("hello".utf8)])
    }

    @Test func `the limit of one request does not hold for the next`() throws {
        let text = Self.request(fields: "Content-Length: 2\r\n", body: "ab")
        var parser = HTTP1RequestParser()
        parser.append(Array((text + text).utf8))
        _ = try parser.next()
        parser.bodyLimit = 2
        while !parser.isReadingHead { _ = try parser.next() }
        _ = try parser.next()
        #expect(parser.bodyLimit == .max)
    }
}
