import Foundation
import HTTPCore
import HTTPServer
import Testing

@Suite struct HTTP1ConformanceTests {
    /// One request of the corpus or of the mutations, with what is expected of it.
    struct Case: CustomTestStringConvertible, Sendable {
        struct Expected: Sendable {
            var method: String
            var path: String
            var body: [UInt8]
            var isComplete: Bool
        }

        var name: String
        var bytes: [UInt8]
        var outcome: String
        var requests: [Expected]

        var testDescription: String { name }
    }

    @Test func `the corpus holds requests of every kind`() throws {
        let cases = try Self.corpus()
        #expect(cases.count > 200)
        #expect(Set(cases.map(\.name)).count == cases.count)
        let outcomes = Set(cases.map(\.outcome))
        for syntax in HTTP1Error.Syntax.allCases {
            #expect(outcomes.contains(syntax.rawValue), "no case for \(syntax)")
        }
    }

    @Test(arguments: try corpus())
    func `a request of the corpus is taken or refused as it says`(_ example: Case) {
        let parsed = ParsedRequests(pieces: [example.bytes])
        // A request behind a complete one may have begun without a head.
        let leftover = example.outcome == "incomplete" && parsed.requests.allSatisfy(\.isComplete)
        #expect(parsed.outcome == (leftover && !parsed.requests.isEmpty ? "accepted" : example.outcome))
        #expect(parsed.requests.map(\.method) == example.requests.map(\.method))
        #expect(parsed.requests.map(\.path) == example.requests.map(\.path))
        #expect(parsed.requests.map(\.body) == example.requests.map(\.body))
        #expect(ParsedRequests(pieces: example.bytes.map { [$0] }) == parsed, "byte by byte gives the same")
    }

    @Test func `what h11 refuses is refused, and what both take is the same request`() throws {
        let count = 20_000
        let cases = try Self.verdicts(count: count)
        #expect(cases.count == count)
        var refusedByH11 = 0
        var takenByBoth = 0
        for example in cases {
            let parsed = ParsedRequests(pieces: [example.bytes])
            let text = String(decoding: example.bytes, as: UTF8.self).debugDescription
            if example.outcome == "refused" {
                refusedByH11 += 1
                #expect(parsed.error != nil, "h11 refuses \(text)")
                continue
            }
            // Where this parser is stricter it must still have seen the same requests up to the error.
            #expect(parsed.requests.count <= example.requests.count, "h11 sees fewer requests in \(text)")
            if parsed.error == nil {
                takenByBoth += 1
                #expect(parsed.requests.count == example.requests.count, "h11 sees more requests in \(text)")
            }
            for (ours, theirs) in zip(parsed.requests, example.requests) {
                #expect(ours.method == theirs.method, "\(text)")
                if theirs.path.hasPrefix("/") {
                    #expect(ours.path + (ours.query.map { "?" + $0 } ?? "") == theirs.path, "\(text)")
                }
                guard parsed.error == nil || ours.isComplete else { continue }
                #expect(ours.body == theirs.body, "\(text)")
                #expect(ours.isComplete == theirs.isComplete, "\(text)")
            }
        }
        #expect(refusedByH11 > 1000 && takenByBoth > 1000, "the mutations are of both kinds")
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private static func corpus() throws -> [Case] {
        let file = root.appending(path: "Tests/Conformance/requests.json")
        return try JSONParser().parse(Array(Data(contentsOf: file))).array().map { value in
            try JSONMembers.read(value) { members in
                let example = Case(
                    name: try members.string("name"), bytes: try members.required("bytes", bytes),
                    outcome: try members.string("outcome"),
                    requests: try members.array("requests", count: 0...10) { value, _ in
                        try JSONMembers.read(value) {
                            Case.Expected(
                                method: try $0.string("method"), path: try $0.string("path"),
                                body: try $0.required("body", bytes), isComplete: true)
                        }
                    })
                _ = try members.string("why")
                _ = try members.optional("h11") { try $0.string() }
                return example
            }
        }
    }

    /// Lets the script write mutations with h11's verdicts. Without Python or h11 this fails.
    private static func verdicts(count: Int) throws -> [Case] {
        let file = FileManager.default.temporaryDirectory.appending(path: "h11-verdicts-\(RequestID())")
        defer { try? FileManager.default.removeItem(at: file) }
        let script = try Process.run(
            root.appending(path: "scripts/conformance"), arguments: ["verdicts", file.path(), String(count)])
        script.waitUntilExit()
        try #require(script.terminationStatus == 0, "scripts/conformance could not ask h11")
        return try Array(Data(contentsOf: file)).split(separator: UInt8(ascii: "\n")).map { line in
            try JSONMembers.read(JSONParser().parse(Array(line))) { members in
                Case(
                    name: "mutation", bytes: try members.required("bytes", bytes),
                    outcome: try members.bool("refused") ? "refused" : "taken",
                    requests: try members.array("requests", count: 0...100) { value, _ in
                        try JSONMembers.read(value) {
                            Case.Expected(
                                method: try $0.string("method"), path: try $0.string("target"),
                                body: try $0.required("body", bytes), isComplete: try $0.bool("complete"))
                        }
                    })
            }
        }
    }

    /// Text in which every character below U+0100 stands for one byte.
    private static func bytes(_ value: JSONValue) throws -> [UInt8] {
        try value.string().unicodeScalars.map { scalar in try #require(UInt8(exactly: scalar.value)) }
    }
}
