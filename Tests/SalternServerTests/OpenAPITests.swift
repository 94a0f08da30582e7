import Foundation
import HTTPCore
import SalternServer
import SalternTesting
import Testing

/// `openapi.yaml` and the table of routes say the same.
@Suite struct OpenAPITests {
    /// Method, path and whether a session is needed, as `GET /v1/account session`.
    private static func described() throws -> Set<String> {
        let file = URL(filePath: #filePath).appending(path: "../../../openapi.yaml").standardized
        var described: Set<String> = []
        var path: String?
        var operation: String?
        var isInPaths = false
        for line in try String(contentsOf: file, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        {
            let indent = line.prefix { $0 == " " }.count
            let text = line.dropFirst(indent)
            if text.isEmpty || text.hasPrefix("#") { continue }
            if indent == 0 { isInPaths = text == "paths:" }
            guard isInPaths else { continue }
            if indent == 2, text.hasPrefix("/") { path = String(text.dropLast()) }
            if indent == 4, let path, ["get:", "put:", "post:", "delete:", "patch:", "head:"].contains(text) {
                let name = "\(text.dropLast().uppercased()) \(path)"
                operation = name
                described.insert(name)
            }
            if indent == 6, text.hasPrefix("security: [{ session: [] }"), let operation {
                described.remove(operation)
                described.insert(operation + " session")
            }
        }
        return described
    }

    @Test func `every route is described, and everything described is a route`() async throws {
        let described = try Self.described()
        let routes = try await TestApplication.with { app in
            // A slash at the end of a page's address is no route of its own to readers.
            Set(
                app.routes.map { $0.metadata.needsSession ? $0.metadata.name + " session" : $0.metadata.name }
                    .map { $0.hasPrefix("GET /s/") && $0.hasSuffix("/") ? String($0.dropLast()) : $0 })
        }
        #expect(routes.subtracting(described) == [], "routes that openapi.yaml does not describe")
        #expect(described.subtracting(routes) == [], "what openapi.yaml describes and nobody serves")
        #expect(routes.count >= 15)
    }
}
