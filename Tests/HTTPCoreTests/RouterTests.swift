import HTTPCore
import Testing

@Suite struct RouterTests {
    private struct ItemID: PathParameterConvertible, Equatable {
        let number: Int

        init?(pathParameter text: String) {
            guard let number = Int(text) else { return nil }
            self.number = number
        }
    }

    private let router = Router(
        [
            (HTTPMethod.get, "/"), (.get, "/v1/items"), (.get, "/v1/items/{id}"), (.put, "/v1/items/{id}"),
            (.delete, "/v1/items/{id}"), (.post, "/v1/items/batch"), (.delete, "/v1/sessions/current"),
            (.delete, "/v1/sessions/{id}"), (.put, "/v1/rotations/{rotation}/items"),
            (.post, "/v1/rotations/{rotation}/items/{item}"), (.get, "/v1/rotations/open/status"),
            (.get, "/caf\u{E9}/x"),
            (.head, "/own"), (.get, "/own"), (.get, "/s/{id}/"),
        ].map { method, template in
            Route(method, template, metadata: "\(method) \(template)") { _ in .noContent }
        })

    /// The route and its parameters as text, or what else became of the path.
    private func match(_ method: HTTPMethod, _ path: String, _ names: String...) -> String {
        switch router.match(method, path) {
        case .found(let route, let parameters):
            ([route.metadata] + names.map { "\($0)=\(parameters[$0] ?? "nil")" }).joined(separator: " ")
        case .methodNotAllowed(let methods): "405 \(methods.map(\.name).joined(separator: " "))"
        case .notFound: "404"
        }
    }

    @Test func `a path leads to its route`() {
        #expect(match(.get, "/") == "GET /")
        #expect(match(.get, "/v1/items") == "GET /v1/items")
        #expect(match(.put, "/v1/items/7", "id") == "PUT /v1/items/{id} id=7")
        #expect(
            match(.post, "/v1/rotations/r/items/i", "rotation", "item")
                == "POST /v1/rotations/{rotation}/items/{item} rotation=r item=i")
    }

    @Test func `a literal segment beats a parameter`() {
        #expect(match(.delete, "/v1/sessions/current", "id") == "DELETE /v1/sessions/current id=nil")
        #expect(match(.delete, "/v1/sessions/currents", "id") == "DELETE /v1/sessions/{id} id=currents")
        #expect(match(.post, "/v1/items/batch") == "POST /v1/items/batch")
        #expect(match(.get, "/v1/items/batch") == "405 POST")
    }

    @Test func `a literal that leads nowhere gives way to a parameter`() {
        #expect(
            match(.put, "/v1/rotations/open/items", "rotation") == "PUT /v1/rotations/{rotation}/items rotation=open")
        #expect(match(.get, "/v1/rotations/open/status") == "GET /v1/rotations/open/status")
    }

    @Test func `another method than those served is answered with those served`() {
        #expect(match(.post, "/v1/items/7") == "405 DELETE GET HEAD PUT")
        #expect(match(.options, "/v1/items") == "405 GET HEAD")
        #expect(match(.get, "/v1/sessions/x") == "405 DELETE")
        #expect(HTTPMethod(token: Array("get".utf8)).map { match($0, "/v1/items") } == "405 GET HEAD")
    }

    @Test func `HEAD is served by GET unless it has a route of its own`() {
        #expect(match(.head, "/v1/items") == "GET /v1/items")
        #expect(match(.head, "/own") == "HEAD /own")
        #expect(match(.head, "/v1/items/batch") == "405 POST")
    }

    @Test func `a slash at the end is a path of its own, where a template has it`() {
        #expect(match(.get, "/s/x/", "id") == "GET /s/{id}/ id=x")
        for path in ["/s/x", "/s//", "/s/", "/s/x//", "/s/x/%2F"] { #expect(match(.get, path) == "404") }
    }

    @Test(arguments: [
        "", "*", "v1/items", "//", "//v1/items", "/v1//items", "/v1/items/", "/v1/items//", "/v1", "/v1/item",
        "/v1/itemss",
        "/v1/items/7/x", "/v1/items/.", "/v1/items/..", "/v1/items/%2e", "/v1/items/%2E%2e", "/v1/./items",
        "/v1/x/../items",
        "/v1/items/%2F", "/v1/items/a%2fb", "/v1%2Fitems", "/v1/items/%00", "/v1/items/a%00b", "/v1/items/%",
        "/v1/items/%4",
        "/v1/items/%zz", "/v1/items/%4g", "/v1/items/%ff", "/v1/items/%c3", "/v1/items/%ed%a0%80", "/V1/items",
        "/v1/Items",
    ])
    func `a path that is not quite one of ours leads nowhere`(_ path: String) {
        #expect(match(.get, path) == "404")
    }

    @Test func `segments are decoded once`() {
        #expect(match(.get, "/v1/items/a%20b%C3%A9", "id") == "GET /v1/items/{id} id=a b\u{E9}")
        #expect(match(.get, "/v1/items/%252F", "id") == "GET /v1/items/{id} id=%2F")
        #expect(match(.get, "/v1/items/a+b", "id") == "GET /v1/items/{id} id=a+b")
        #expect(match(.get, "/%76%31/it%65ms") == "GET /v1/items")
        #expect(match(.get, "/caf%C3%A9/x") == "GET /caf\u{E9}/x")
        #expect(match(.get, "/v1/items/...", "id") == "GET /v1/items/{id} id=...")
    }

    @Test func `the table can be read`() {
        #expect(router.routes.count == 15)
        #expect(router.routes[2].template.description == "/v1/items/{id}")
        #expect(router.routes[2].template.parameterNames == ["id"])
    }

    @Test func `a parameter has the type that is asked for or the request is refused`() throws {
        guard case .found(_, let good) = router.match(.get, "/v1/items/7"),
            case .found(_, let bad) = router.match(.get, "/v1/items/x")
        else {
            Issue.record("no route")
            return
        }
        #expect(try good.require("id", as: ItemID.self).number == 7)
        let problem = #expect(throws: Problem.self) { try bad.require("id", as: ItemID.self) }
        #expect(problem?.status == .badRequest)
        #expect(problem?.code == "invalid_parameter")
        #expect(problem?.field == "id")
    }
}
