import HTTPCore
import Testing

@Suite struct MiddlewareTests {
    /// Notes its name on the way in and on the way out.
    private struct Note: Middleware {
        let name: String

        func respond(to request: Request, next: Handler) async throws -> Response {
            var request = request
            request.body += Array("\(name)>".utf8)
            var response = try await next(request)
            response.fields.append("Trace", name)
            return response
        }
    }

    private struct Refuse: Middleware {
        func respond(to request: Request, next: Handler) async throws -> Response { throw Problem.notFound }
    }

    private let request = Request(
        id: RequestID(), head: RequestHead(method: .get, target: "/"),
        client: ClientAddress(address: "127.0.0.1", port: 1))

    @Test func `the first middleware is the outermost`() async throws {
        let chain: [any Middleware] = [Note(name: "a"), Note(name: "b")]
        let handler = chain.composed { request in Response(status: .ok, body: .bytes(request.body)) }
        let response = try await handler(request)
        #expect(response.body == .bytes(Array("a>b>".utf8)))
        #expect(response.fields.all(named: "trace") == ["b", "a"])
    }

    @Test func `a middleware can answer in the place of the rest`() async {
        let chain: [any Middleware] = [Note(name: "a"), Refuse(), Note(name: "b")]
        let handler = chain.composed { _ in
            Issue.record("the handler was called")
            return .noContent
        }
        await #expect(throws: Problem.self) { try await handler(request) }
    }

    @Test func `no middleware is the handler itself`() async throws {
        let response = try await ([] as [any Middleware]).composed { _ in .noContent }(request)
        #expect(response == .noContent)
    }
}
