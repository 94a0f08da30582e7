import HTTPCore
import Testing

@Suite struct BodyRuleTests {
    private func head(_ framing: BodyFraming, _ fields: (name: String, value: String)...) -> RequestHead {
        RequestHead(method: .post, target: "/", fields: fields, framing: framing)
    }

    private func code(_ rule: BodyRule, _ head: RequestHead) -> String? {
        #expect(throws: Problem.self) { try rule.bodyLimit(for: head) }?.code
    }

    @Test func `a route without a body takes none`() throws {
        #expect(try BodyRule.none.bodyLimit(for: head(.none)) == 0)
        #expect(try BodyRule.none.bodyLimit(for: head(.none, ("Content-Type", "text/plain"))) == 0)
        #expect(code(.none, head(.length(1))) == "unexpected_body")
        // It may be empty (RFC 9112 §6.3): its first byte is refused.
        #expect(try BodyRule.none.admit(head(.chunked)) == AdmittedBody(type: .none, limit: 0))
    }

    @Test(arguments: [
        "application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8",
        "application/json ; charset=\"utf-8\" ", "application/json;", "application/json; ; ",
        "application/json;;charset=utf-8;",
        "application/json; charset=utf8", "application/json; charset=UTF8", "application/json; CHARSET=\"Utf\\-8\"",
        "application/json; version=1", "application/json; charset=utf-8; x=y", "application/json\t;\tx=\"a;b,\\\"c\"",
        "application/json; charset=utf-8; charset=UTF8", "application/json;x=\"\"",
    ])
    func `JSON is taken under its own name`(_ type: String) throws {
        #expect(try BodyRule.json(limit: 9).bodyLimit(for: head(.length(9), ("content-type", type))) == 9)
        #expect(try BodyRule.json(limit: 9).bodyLimit(for: head(.chunked, ("content-type", type))) == 9)
    }

    @Test func `a route can take either JSON or bytes, each with its own limit`() throws {
        let rule = BodyRule.jsonOrBytes(json: 9, bytes: 20)
        let json = try rule.admit(head(.length(9), ("Content-Type", "application/json; charset=utf-8")))
        #expect(json == AdmittedBody(type: .json, limit: 9))
        let bytes = try rule.admit(head(.length(20), ("Content-Type", "Application/Octet-Stream")))
        #expect(bytes == AdmittedBody(type: .bytes, limit: 20))
        #expect(try rule.admit(head(.chunked, ("Content-Type", "application/octet-stream"))) == bytes)
        #expect(code(rule, head(.length(10), ("Content-Type", "application/json"))) == "body_too_large")
        #expect(code(rule, head(.length(21), ("Content-Type", "application/octet-stream"))) == "body_too_large")
        #expect(code(rule, head(.none, ("Content-Type", "application/octet-stream"))) == "missing_body")
        #expect(
            code(.bytes(limit: 20), head(.length(1), ("Content-Type", "application/json"))) == "unsupported_media_type")
        for type in [
            "application/octet-stream; charset=binary", "application/octet-stream;", "Application/Octet-Stream ;v=1",
        ] {
            #expect(try rule.admit(head(.length(20), ("Content-Type", type))) == bytes)
        }
        for type in ["", "text/plain", "application/octet-stream, text/x", "application/octet-stream; charset"] {
            #expect(code(rule, head(.length(1), ("Content-Type", type))) == "unsupported_media_type")
        }
        #expect(code(rule, head(.length(1))) == "unsupported_media_type")
        #expect(
            code(
                rule, head(.length(1), ("Content-Type", "application/octet-stream"), ("Content-Encoding", "gzip")))
                == "unsupported_content_encoding")
        #expect(
            code(.json(limit: 9), head(.length(1), ("Content-Type", "application/octet-stream")))
                == "unsupported_media_type")
    }

    @Test(arguments: [
        "", "text/plain", "application/jsonp", "application/json+x", "application/problem+json",
        "application/json; charset=latin1", "application/json; charset=utf-16", "application/json; charset=\"\"",
        "application/json; charset=utf-8; charset=latin1", "application/json; charset", "application/json; charset=",
        "application/json; charset = utf-8", "application/json; charset=\"utf-8", "application/json; =x",
        "application/json, application/json", "application/x-www-form-urlencoded", "*/*", "json",
    ])
    func `anything else is not taken as JSON`(_ type: String) {
        let head = head(.length(1), ("Content-Type", type))
        let problem = #expect(throws: Problem.self) { try BodyRule.json(limit: 9).bodyLimit(for: head) }
        #expect(problem?.status == .unsupportedMediaType)
        #expect(problem?.code == "unsupported_media_type")
    }

    @Test func `a body needs a type, and one type`() {
        #expect(code(.json(limit: 9), head(.length(1))) == "unsupported_media_type")
        let json = (name: "Content-Type", value: "application/json")
        #expect(code(.json(limit: 9), head(.length(1), json, json)) == "unsupported_media_type")
    }

    @Test func `compressed bodies are refused`() throws {
        let json = (name: "Content-Type", value: "application/json")
        for coding in ["gzip", "identity, gzip", "x-identity", "br"] {
            #expect(
                code(.json(limit: 9), head(.length(1), json, ("Content-Encoding", coding)))
                    == "unsupported_content_encoding")
        }
        for coding in ["Identity", "", ",", "identity, identity"] {
            let plain = head(.length(1), json, ("Content-Encoding", coding))
            #expect(try BodyRule.json(limit: 9).bodyLimit(for: plain) == 9)
        }
    }

    @Test func `a body that says it is too long is refused with the limit`() {
        let head = head(.length(10), ("Content-Type", "application/json"))
        let problem = #expect(throws: Problem.self) { try BodyRule.json(limit: 9).bodyLimit(for: head) }
        #expect(problem?.status == .contentTooLarge)
        #expect(problem?.code == "body_too_large")
        #expect(problem?.limit == 9)
    }

    @Test(arguments: [BodyRule.json(limit: 9), .bytes(limit: 9), .jsonOrBytes(json: 9, bytes: 9)])
    func `a chunked body that cannot be taken is refused for its content, if it has some`(rule: BodyRule) throws {
        let gzip = (name: "Content-Encoding", value: "gzip")
        let type = rule == .bytes(limit: 9) ? "application/octet-stream" : "application/json"
        for (head, code) in [
            (head(.chunked), "unsupported_media_type"),
            (head(.chunked, ("Content-Type", "text/plain")), "unsupported_media_type"),
            (head(.chunked, ("Content-Type", type), gzip), "unsupported_content_encoding"),
        ] {
            #expect(try rule.admit(head) == AdmittedBody(type: .none, limit: 0))
            #expect(rule.refusalOfContent(head).code == code)
        }
        #expect(BodyRule.none.refusalOfContent(head(.chunked)).code == "unexpected_body")
    }

    @Test func `a body that is needed must come`() {
        #expect(code(.json(limit: 9), head(.none, ("Content-Type", "application/json"))) == "missing_body")
    }
}
