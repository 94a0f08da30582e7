import HTTPCore
import HTTPServer
import Testing

@Suite struct HTTP1RequestParserTests {
    private static let host = "Host: localhost\r\n"

    @Test(arguments: [1, 7, 64, 1_000])
    func `a body can be taken without being buffered, whatever the pieces`(size: Int) throws {
        let body = (0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let chunks =
            Array("5\r\n".utf8) + body[..<5] + Array("\r\n7cb\r\n".utf8) + body[5...] + Array("\r\n0\r\n\r\n".utf8)
        for (framing, content) in [("Content-Length: 2000", body), ("Transfer-Encoding: chunked", chunks)] {
            var parser = HTTP1RequestParser()
            parser.append(Array("POST / HTTP/1.1\r\n\(Self.host)\(framing)\r\n\r\n".utf8))
            guard case .head? = try parser.next() else {
                Issue.record("no head")
                return
            }
            var received: [UInt8] = []
            var taken = 0
            var hasEnded = false
            var rest = (content + Array("GET /next".utf8))[...]
            while !rest.isEmpty {
                var piece = Array(rest.prefix(size))
                rest = rest.dropFirst(size)
                let count = try piece.withUnsafeBytes { bytes throws(HTTP1Error) in try parser.takeBody(of: bytes) }
                received += piece[..<count]
                taken += count
                piece.removeSubrange(..<count)
                parser.append(piece)
                while !hasEnded, let event = try parser.next() {
                    switch event {
                    case .body(let bytes): received += bytes
                    case .end: hasEnded = true
                    case .head: Issue.record("a head within a body")
                    }
                }
            }
            #expect(received == body)
            #expect(taken > 0)
            #expect(hasEnded)
            #expect(parser.bufferedByteCount == "GET /next".utf8.count)
        }
    }

    @Test func `a body over the limit is not taken unbuffered either`() throws {
        var parser = HTTP1RequestParser()
        parser.append(Array("POST / HTTP/1.1\r\n\(Self.host)Content-Length: 11\r\n\r\n".utf8))
        _ = try parser.next()
        parser.bodyLimit = 10
        let error = #expect(throws: HTTP1Error.self) {
            try [UInt8](repeating: 0, count: 11).withUnsafeBytes { try parser.takeBody(of: $0) }
        }
        #expect(error == .bodyTooLarge(limit: 10))
        #expect(throws: HTTP1Error.self) { try parser.next() }
    }

    @Test func `a head says what the client sent`() throws {
        var parser = HTTP1RequestParser()
        parser.append(
            Array(
                """
                PUT /v1/items/%41?a=b&c HTTP/1.1\r
                Host: localhost:8443\r
                AUTHORIZATION:  Bearer x \r
                If-Match: "1"\r
                if-match: "2"\r
                Content-Length: 3\r
                Expect: 100-continue\r
                \r\n
                """.utf8))
        guard case .head(let head)? = try parser.next() else {
            Issue.record("no head")
            return
        }
        #expect(head.method == .put)
        #expect(head.path == "/v1/items/%41")
        #expect(head.query == "a=b&c")
        #expect(head.versionMinor == 1)
        #expect(head.framing == .length(3))
        #expect(head.expectsContinue)
        #expect(head.wantsKeepAlive)
        #expect(head.fields["authorization"] == "Bearer x")
        #expect(head.fields["If-Match"] == "\"1\", \"2\"")
        #expect(head.fields.all(named: "if-match") == ["\"1\"", "\"2\""])
        #expect(head.fields["accept"] == nil)
        #expect(head.fields.withValue(named: "host") { Array($0) } == Array("localhost:8443".utf8))
        #expect(head.fields.count == 6)
        #expect(try parser.next() == nil)
    }

    @Test func `any way to cut the bytes gives the same requests`() {
        let text =
            "GET /a?b HTTP/1.1\r\n\(Self.host)\r\n"
            + "POST /b HTTP/1.1\r\n\(Self.host)Content-Length: 11\r\n\r\nhello world"
            + "POST /c HTTP/1.1\r\n\(Self.host)Transfer-Encoding: chunked\r\n\r\n"
            + "5;x=\"y\"\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\nTrailer: 1\r\n\r\n"
            + "GET /d HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /e HTTP/1.1\r\n\r\n"
        let bytes = Array(text.utf8)
        let whole = ParsedRequests(pieces: [bytes])
        #expect(whole.requests.map(\.path) == ["/a", "/b", "/c", "/d"])
        #expect(whole.error == .syntax(.missingHost))
        for length in 1..<bytes.count {
            let pieces = stride(from: 0, to: bytes.count, by: length).map {
                Array(bytes[$0..<min($0 + length, bytes.count)])
            }
            #expect(ParsedRequests(pieces: pieces) == whole, "pieces of \(length)")
        }
        for cut in 1..<bytes.count {
            #expect(ParsedRequests(pieces: [Array(bytes[..<cut]), Array(bytes[cut...])]) == whole, "cut at \(cut)")
        }
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\n\(host)\r\n", true),
        ("GET / HTTP/1.1\r\n\(host)Connection: close\r\n\r\n", false),
        ("GET / HTTP/1.1\r\n\(host)Connection: x, CLOSE\r\n\r\n", false),
        ("GET / HTTP/1.1\r\n\(host)Connection: keep-alive\r\nConnection: close\r\n\r\n", false),
        ("GET / HTTP/1.1\r\n\(host)Connection: closed\r\n\r\n", true),
        ("GET / HTTP/1.0\r\n\r\n", false),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
        ("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false),
    ])
    func `the connection stays open when both sides may keep it so`(text: String, staysOpen: Bool) {
        #expect(ParsedRequests(text).requests.map(\.wantsKeepAlive) == [staysOpen])
    }

    @Test func `a client waits for 100 Continue only when it has a body to send`() {
        let expect = "Expect: 100-continue\r\n"
        func expects(_ version: String, _ fields: String) -> [Bool] {
            ParsedRequests("POST / HTTP/\(version)\r\n\(Self.host)\(expect)\(fields)\r\n").requests.map(
                \.expectsContinue)
        }
        #expect(expects("1.1", "Content-Length: 1\r\n") == [true])
        #expect(expects("1.1", "Transfer-Encoding: chunked\r\n") == [true])
        #expect(expects("1.1", "Content-Length: 0\r\n") == [false])
        #expect(expects("1.1", "") == [false])
        #expect(expects("1.0", "Content-Length: 1\r\n") == [false])
    }

    @Test func `every byte is judged alike in every position of a value`() {
        for byte in UInt8.min...UInt8.max {
            let isAllowed = byte >= 0x20 && byte != 0x7F || byte == 0x09
            for position in 1..<24 {
                var value = [UInt8](repeating: 0x61, count: 25)
                value[position] = byte
                let head = Array("GET / HTTP/1.1\r\n\(Self.host)X: ".utf8) + value + Array("\r\n\r\n".utf8)
                #expect((ParsedRequests(pieces: [head]).error == nil) == isAllowed, "\(byte) at \(position)")
            }
        }
    }

    @Test func `the next request is read only when it is asked for`() throws {
        var parser = HTTP1RequestParser()
        let one = "GET / HTTP/1.1\r\n\(Self.host)\r\n"
        parser.append(Array((one + one).utf8))
        #expect(!parser.isBetweenRequests)
        _ = try parser.next()
        guard case .end? = try parser.next() else {
            Issue.record("no end")
            return
        }
        #expect(parser.isReadingHead)
        #expect(!parser.isBetweenRequests)
        #expect(parser.bufferedByteCount == one.utf8.count)
        _ = try parser.next()
        #expect(!parser.isReadingHead)
        _ = try parser.next()
        #expect(parser.isBetweenRequests)
    }

    @Test func `an error is final`() {
        var parser = HTTP1RequestParser()
        parser.append(Array("BAD\r\n".utf8))
        #expect(throws: HTTP1Error.syntax(.malformedRequestLine)) { try parser.next() }
        parser.append(Array("GET / HTTP/1.1\r\n\(Self.host)\r\n".utf8))
        #expect(throws: HTTP1Error.syntax(.malformedRequestLine)) { try parser.next() }
    }

    @Test func `a large body arrives whole through many pieces`() {
        let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 * 7) }
        let head = Array("POST / HTTP/1.1\r\n\(Self.host)Content-Length: \(body.count)\r\n\r\n".utf8)
        let bytes = head + body + head + body
        let pieces = stride(from: 0, to: bytes.count, by: 4093).map { Array(bytes[$0..<min($0 + 4093, bytes.count)]) }
        let parsed = ParsedRequests(pieces: pieces)
        #expect(parsed.error == nil)
        #expect(parsed.requests.map { $0.body == body } == [true, true])
    }

    @Test func `chunks that have come are pieces of hundreds, and not a piece each`() throws {
        var parser = HTTP1RequestParser()
        let count = 1_000
        parser.append(Array("POST / HTTP/1.1\r\n\(Self.host)Transfer-Encoding: chunked\r\n\r\n".utf8))
        parser.append(Array((String(repeating: "1\r\nx\r\n", count: count) + "3\r\nyyy\r\n5\r\nzz").utf8))
        var pieces: [Int] = []
        while let event = try parser.next() {
            if case .body(let bytes) = event { pieces.append(bytes.count) }
        }
        #expect(pieces == [256, 256, 256, count - 3 * 256 + 5])
    }

    @Test func `what is wrong behind chunks that have come does not hide them`() throws {
        var parser = HTTP1RequestParser()
        parser.append(Array("POST / HTTP/1.1\r\n\(Self.host)Transfer-Encoding: chunked\r\n\r\n".utf8))
        parser.append(Array("1\r\nx\r\n1\r\ny\r\n1\r\nzz\r\n".utf8))
        guard case .head? = try parser.next(), case .body(let bytes)? = try parser.next() else {
            Issue.record("no piece")
            return
        }
        #expect(bytes == ZeroizingBuffer("xyz".utf8))
        #expect(throws: HTTP1Error.syntax(.malformedChunk)) { try parser.next() }
        #expect(throws: HTTP1Error.syntax(.malformedChunk)) { try parser.next() }
    }

    @Test func `a connection between requests keeps little memory`() throws {
        var parser = HTTP1RequestParser()
        let body = [UInt8](repeating: 0, count: 1 << 20)
        parser.append(Array("POST / HTTP/1.1\r\n\(Self.host)Content-Length: \(body.count)\r\n\r\n".utf8) + body)
        while try parser.next() != nil, !parser.isBetweenRequests {}
        #expect(parser.isBetweenRequests)
        #expect(parser.bufferCapacity <= 4096)
    }
}
