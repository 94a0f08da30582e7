import Cryptography
import Foundation
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct OpenAPITests {
    @Test func `openapi.yaml and the table of routes have the same operations`() async throws {
        let documented = try OpenAPIDocument().operations
        let served = try await TestApplication.with { app in
            let application = Application(
                configuration: app.configuration,
                installation: Installation(decoys: DecoyParameters(secret: SecureRandom.secureBytes(32))),
                database: app.postgres,
                log: Log(minimumLevel: .error, sink: CapturedLog()) { UTCTimestamp(secondsSinceEpoch: 0) },
                metrics: app.metrics, clock: app.clock)
            return Set(application.router.routes.map(OpenAPIDocument.Operation.init))
        }
        #expect(documented.count > 10)
        #expect(documented.subtracting(served).isEmpty, "documented, and not served so")
        #expect(served.subtracting(documented).isEmpty, "served, and not documented so")
    }
}

/// As much of openapi.yaml as the table of routes knows, read by its indentation.
private struct OpenAPIDocument {
    struct Operation: Hashable, CustomStringConvertible {
        var method: String
        var path: String
        var needsSession = false
        var hasBody = false
        var query: Set<String> = []

        var description: String {
            "\(method) \(path), session: \(needsSession), body: \(hasBody), query: \(query.sorted())"
        }
    }

    private(set) var operations: Set<Operation> = []

    init() throws {
        let repository = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL
        let text = try String(contentsOf: repository.appending(path: "openapi.yaml"), encoding: .utf8)
        var path = ""
        var operation: Operation?
        var parameter = ""
        for line in text.split(separator: "\n").drop(while: { $0 != "paths:" }).dropFirst() {
            guard line.hasPrefix(" ") else { break }
            let word = line.drop { $0 == " " }
            switch line.count - word.count {
            case 2:
                path = String(word.dropLast())
            case 4 where ["get:", "put:", "post:", "delete:"].contains(word):
                if let operation { operations.insert(operation) }
                operation = Operation(method: word.dropLast().uppercased(), path: path)
            case 6 where word == "security: [{ session: [] }]":
                operation?.needsSession = true
            case 6 where word == "requestBody:":
                operation?.hasBody = true
            case 8 where word.hasPrefix("- name: "):
                parameter = String(word.dropFirst("- name: ".count))
            case 10 where word == "in: query":
                operation?.query.insert(parameter)
            default:
                break
            }
        }
        if let operation { operations.insert(operation) }
    }
}

extension OpenAPIDocument.Operation {
    fileprivate init(_ route: Route<RouteMetadata>) {
        self.init(
            method: route.method.name, path: route.template.description, needsSession: route.metadata.needsSession,
            hasBody: route.body != .none, query: Set(route.metadata.query))
    }
}
