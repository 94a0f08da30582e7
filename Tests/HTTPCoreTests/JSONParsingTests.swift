import Testing

@testable import HTTPCore

@Suite struct JSONParsingTests {
    static let documents = [
        #"{"a":[1,-2.5e3,true,false,null,"x\n\u00e9\ud83d\ude00\\\/","größe 🔑"],"b":{"c":{"":0}},"d":[]}"#,
        #" [ {} , [ ] , "" , { "k" : "v\t" } ] "#, #""\u0041\u0042c\"""#, "12", "-0", "\"a\"", "tru", "[1,]", "[1 2]",
        #"{"a":1,"a":2}"#, #"{"a" 1}"#, #"{"a":1"#, #""unfinished"#, #""\ud800x""#, #""\q""#, "\"\u{1}\"", "[1] 2", "",
        #"{"a":{"b":[{"c":"\u00e9"}]}, "x":1e999}"#, "[01]", "{,}", "nul", "[[[[[[[[[[]]]]]]]]]]", "\u{FEFF}[]",
    ]

    @Test(arguments: documents)
    func `where a document is left and gone on with makes no difference`(_ text: String) {
        let whole = Self.outcome(of: text, work: .max)
        for work in 1...70 { #expect(Self.outcome(of: text, work: work) == whole, "\(work)") }
    }

    @Test func `no piece is much longer than what was asked for`() throws {
        let values = Array(repeating: #"{"name":"\u00e9value","list":[1,2,3,null]}"#, count: 500)
        let text = "[\(values.joined(separator: ",")),\"\(String(repeating: "é\\n", count: 20_000))\"\(Self.spaces)]"
        var parsing = JSONParsing(ZeroizingBuffer(text.utf8), limits: JSONParser())
        var pieces = 1
        while true {
            let before = parsing.position
            guard try parsing.advance(work: 512) == nil else { break }
            pieces += 1
            // A number, a literal or an escape is not interrupted.
            #expect(parsing.position - before <= 512 + 64)
        }
        // Values count beside their bytes: each of these is charged.
        #expect(pieces >= (text.utf8.count + values.count * 5 * 64) / 512)
    }

    private static let spaces = String(repeating: " ", count: 30_000)

    @Test func `a bomb of values is refused at the first that is too many`() {
        let bomb = "[" + Array(repeating: #"{"":0}"#, count: 200_000).joined(separator: ",") + "]"
        let error = #expect(throws: JSONError.self) {
            try JSONParser(valueLimit: 256).parse(ZeroizingBuffer(bomb.utf8))
        }
        #expect(error?.code == .tooManyValues)
        #expect(error?.limit == 256)
        // Of each object there are two values and eight bytes.
        #expect(error.map { $0.offset < 256 * 8 } == true)
    }

    @Test func `values are counted at every depth, and as many as are allowed are taken`() throws {
        let parser = JSONParser(valueLimit: 6)
        #expect(throws: Never.self) { try parser.parse(Array(#"{"a":[1,2,{"b":3}]}"#.utf8)) }
        let error = #expect(throws: JSONError.self) { try parser.parse(Array(#"{"a":[1,2,{"b":3}],"c":null}"#.utf8)) }
        #expect(error?.code == .tooManyValues)
    }

    @Test func `a long name is refused before it is compared with others`() {
        let long = String(repeating: "n", count: JSONParser.nameLengthLimit)
        #expect(throws: Never.self) { try JSONParser().parse(Array("{\"\(long)\":0}".utf8)) }
        for name in [
            long + "n", long + "é", String(repeating: "é", count: 600), String(repeating: "\\u00e9", count: 600),
        ] {
            let error = #expect(throws: JSONError.self) { try JSONParser().parse(Array("{\"\(name)\":0}".utf8)) }
            #expect(error?.code == .nameTooLong)
            #expect(error?.offset == 1)
        }
    }

    @Test(arguments: [1, 7, 27, 512, 100_000])
    func `a document that ends in a long name is the same error in pieces of any size`(work: Int) {
        let text = #"{"a":1,"b\u0062"# + String(repeating: "A", count: JSONParser.nameLengthLimit) + "}"
        guard case .failure(let error) = Self.outcome(of: text, work: work) else {
            Issue.record("it was parsed")
            return
        }
        #expect(error.code == .nameTooLong)
        #expect(error.offset == 7)
    }

    @Test func `others have their turn after every slice of a large document`() async throws {
        let turns = Turns()
        let document = ZeroizingBuffer("[\"\(String(repeating: "A", count: 4 * 1_048_576))\"]".utf8)
        let value = try await JSONParser().parse(document, pace: Pace { turns.count += 1 })
        #expect(try value.array()[0].text().count == 4 * 1_048_576)
        #expect(turns.count == 4 * 1_048_576 / Pace.slice)
        turns.count = 0
        _ = try await JSONParser().parse(ZeroizingBuffer("[1,2]".utf8), pace: Pace { turns.count += 1 })
        #expect(turns.count == 0)
    }

    @Test func `what others still hold of a document is not changed`() throws {
        let document = ZeroizingBuffer(#"["a\nb"]"#.utf8)
        let value = try JSONParser().parse(document)
        #expect(try value.array()[0].text() == "a\nb")
        #expect(String(decoding: document, as: UTF8.self) == #"["a\nb"]"#)
    }

    private static func outcome(of text: String, work: Int) -> Result<JSONValue, JSONError> {
        var parsing = JSONParsing(ZeroizingBuffer(text.utf8), limits: JSONParser(depthLimit: 8))
        do throws(JSONError) {
            while true {
                if let value = try parsing.advance(work: work) { return .success(value) }
            }
        } catch {
            return .failure(error)
        }
    }
}

/// Counts the turns that others are given, in one task.
private final class Turns: @unchecked Sendable {
    var count = 0
}
