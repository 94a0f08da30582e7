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

    /// The block of lines that describe one schema, from the line of its type on.
    private static func integers() throws -> [(line: Int, text: String)] {
        let file = URL(filePath: #filePath).appending(path: "../../../openapi.yaml").standardized
        let lines = try String(contentsOf: file, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        return lines.enumerated().compactMap { index, line in
            guard line.contains("type: integer") || line.contains("type: [integer") else { return nil }
            if line.contains("{") { return (index + 1, String(line)) }
            let indent = line.prefix { $0 == " " || $0 == "-" }.count
            let members = lines[(index + 1)...].prefix { $0.prefix { $0 == " " }.count >= indent && !$0.isEmpty }
                .filter { $0.prefix { $0 == " " }.count == indent }
            return (index + 1, ([line] + members).joined(separator: "\n"))
        }
    }

    /// Generators make 32 bits of an integer without a format. Revisions are above 2^50 once a database was restored.
    @Test func `every integer that can exceed 31 bits says that it has 64`() throws {
        let integers = try Self.integers()
        #expect(integers.count > 70)
        for (line, text) in integers {
            let maximum = text.firstMatch(of: /(?:maximum|const): (\d+)/).flatMap { Int64($0.1) }
            let isShort = maximum.map { $0 <= Int64(Int32.max) } ?? false
            #expect(isShort != text.contains("format: int64"), "openapi.yaml:\(line)")
        }
    }

    @Test func `every route is described, and everything described is a route`() async throws {
        let described = try Self.described()
        let routes = try await TestApplication.with { app in
            // A slash at the end of a page's address is no route of its own to readers.
            Set(
                app.routes.map { $0.metadata.needsSession ? $0.metadata.name + " session" : $0.metadata.name }
                    .map { $0.contains(/^GET \/[sj]\/.*\/$/) ? String($0.dropLast()) : $0 })
        }
        #expect(routes.subtracting(described) == [], "routes that openapi.yaml does not describe")
        #expect(described.subtracting(routes) == [], "what openapi.yaml describes and nobody serves")
        #expect(routes.count >= 15)
    }
}
