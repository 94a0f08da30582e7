import HTTPCore
import Testing

@Suite struct MessageTests {
    @Test func `response fields are found in any case and keep their order`() {
        var fields: HTTPFields = ["Vary": "a", "X": "1"]
        fields.append("vary", "b")
        #expect(fields["VARY"] == "a, b")
        #expect(fields.all(named: "Vary") == ["a", "b"])
        #expect(fields.contains("x"))
        fields.set("x", "2")
        #expect(fields.map { "\($0.name)=\($0.value)" } == ["Vary=a", "vary=b", "x=2"])
        fields.remove("Vary")
        #expect(fields["vary"] == nil)
        #expect(fields.count == 1)
    }

    @Test func `control characters never get into a response field`() {
        let fields: HTTPFields = ["A": "\r\nB: c\u{0}\u{1F}\u{7F}", "Tab": "a\tb", "Text": "caf\u{E9}"]
        #expect(fields["a"] == "  B: c   ")
        #expect(fields["tab"] == "a\tb")
        #expect(fields["text"] == "caf\u{E9}")
    }

    @Test func `a name that is no token is a programming error`() async {
        await #expect(processExitsWith: .failure) {
            var fields = HTTPFields()
            fields.append("a:b", "")
        }
        await #expect(processExitsWith: .failure) {
            var fields = HTTPFields()
            fields.append("", "")
        }
    }

    @Test(arguments: [
        ("GET", HTTPMethod.get), ("HEAD", .head), ("POST", .post), ("PUT", .put), ("DELETE", .delete),
        ("PATCH", .patch),
        ("OPTIONS", .options), ("CONNECT", .connect), ("TRACE", .trace),
    ])
    func `a known method is recognised`(name: String, method: HTTPMethod) {
        #expect(HTTPMethod(token: Array(name.utf8)) == method)
        #expect(method.description == name)
    }

    @Test func `a method is a token`() {
        #expect(HTTPMethod(token: Array("BREW-COFFEE".utf8))?.name == "BREW-COFFEE")
        #expect(HTTPMethod(token: Array("get".utf8)) != .get)
        for text in ["", " ", "G T", "GE\u{0}", "A/B", "caf\u{E9}", "ABCDEFG:", "ABCDEFGHIJ("] {
            #expect(HTTPMethod(token: Array(text.utf8)) == nil, "\(text)")
        }
    }

    @Test func `exactly the token characters of RFC 9110 are token characters`() {
        let expected = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        for byte in UInt8.min...UInt8.max {
            #expect(ASCII.isTokenCharacter(byte) == expected.contains(byte), "\(byte)")
        }
    }

    @Test func `a request made in the process is like one from a connection`() {
        let head = RequestHead(
            method: .get, target: "/a%20b?x=1?2", fields: [("Accept", "*/*"), ("ACCEPT", "text/html")],
            framing: .length(3))
        #expect(head.path == "/a%20b")
        #expect(head.query == "x=1?2")
        #expect(head.fields["accept"] == "*/*, text/html")
        #expect(head.fields.contains("Accept"))
        #expect(RequestHead(method: .get, target: "/").query == nil)
        #expect(RequestHead(method: .get, target: "/?").query == "")
    }

    @Test func `nothing that can be a secret is printed`() {
        let head = RequestHead(
            method: .get, target: "/s/canary?canary=canary", fields: [("Authorization", "canary")], framing: .none)
        let request = Request(
            id: RequestID(), head: head, client: ClientAddress(address: "192.0.2.1", port: 1),
            body: RequestBody(ZeroizingBuffer("canary".utf8)))
        var text = "\(head) \(request) \(head.fields) \(String(reflecting: request))"
        dump(request, to: &text)
        dump(head, to: &text)
        #expect(!text.contains("canary"))
        #expect(!text.contains("99, 97, 110"))
    }

    @Test func `identifiers are 32 hexadecimal digits and differ`() {
        #expect(RequestID(high: 0x0F, low: .max).description == "000000000000000fffffffffffffffff")
        #expect(Set((0..<1000).map { _ in RequestID().description }).count == 1000)
    }

    @Test func `an address of IPv6 is written in brackets`() {
        #expect(ClientAddress(address: "::1", port: 80).description == "[::1]:80")
        #expect(ClientAddress(address: "127.0.0.1", port: 80).description == "127.0.0.1:80")
    }

    @Test func `a JSON response says what it is`() {
        let response = Response.json(.created) { writer in writer.object { $0.member("a", 1) } }
        #expect(response.status == .created)
        #expect(response.fields["Content-Type"] == "application/json")
        #expect(response.body == .bytes(ZeroizingBuffer(#"{"a":1}"#.utf8)))
    }
}
