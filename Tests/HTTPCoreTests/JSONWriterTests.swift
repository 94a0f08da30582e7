import HTTPCore
import Testing

@Suite struct JSONWriterTests {
    private func written(_ build: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        build(&writer)
        return String(decoding: writer.finish(), as: UTF8.self)
    }

    @Test func `objects and arrays nest, with commas where they belong`() {
        let text = written { writer in
            writer.object { writer in
                writer.member("a", 1)
                writer.array("list") { writer in
                    writer.integer(-1)
                    writer.string("x")
                    writer.array { _ in }
                    writer.object { _ in }
                    writer.null()
                    writer.bool(true)
                }
                writer.object("inner") { $0.member("b", false) }
                writer.member("plain", plain: Array("QUJD".utf8))
                writer.member("value", ["k": [1, "two"]] as JSONValue)
                writer.name("raw")
                writer.raw(json: "[0]".utf8)
                writer.member("last", "z")
            }
        }
        #expect(
            text == #"{"a":1,"list":[-1,"x",[],{},null,true],"inner":{"b":false},"plain":"QUJD","#
                + #""value":{"k":[1,"two"]},"raw":[0],"last":"z"}"#)
    }

    @Test func `text is escaped where JSON demands it and nowhere else`() {
        #expect(
            written { $0.string("\"\\/\u{8}\u{9}\u{A}\u{C}\u{D}\u{0}\u{1F}\u{7F}\u{E9}\u{2028}\u{1F600}") }
                == "\"\\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001f\u{7F}\u{E9}\u{2028}\u{1F600}\"")
    }

    @Test func `text with an escape in every position reads back`() throws {
        for length in 0..<20 {
            for position in 0..<max(1, length) {
                var text = [Character](repeating: "a", count: length)
                if length > 0 { text[position] = "\n" }
                let document = written { $0.string(String(text)) }
                #expect(try JSONParser().parse(Array(document.utf8)) == .string(String(text)))
            }
        }
    }

    @Test(arguments: [0, 1, -1, 9, 10, 99, 100, 1_234_567_890, Int64.max, Int64.min])
    func `an integer is written exactly`(_ value: Int64) {
        #expect(written { $0.integer(value) } == String(value))
    }

    @Test(arguments: [0.1, -0.0, 1e300, .leastNonzeroMagnitude, .greatestFiniteMagnitude, 123456789.125])
    func `a floating-point number reads back as the same`(_ value: Double) throws {
        let document = written { $0.double(value) }
        guard case .double(let again) = try JSONParser().parse(Array(document.utf8)) else {
            Issue.record("\(document) is not a double")
            return
        }
        #expect(again.bitPattern == value.bitPattern)
    }

    @Test func `an encoder can write its text in place`() {
        let text = written { writer in
            writer.array { writer in
                writer.string(plainCapacity: 8) { buffer in
                    for index in 0..<3 { buffer[index] = 0x41 + UInt8(index) }
                    return 3
                }
                writer.string(plainCapacity: 0) { _ in 0 }
            }
        }
        #expect(text == #"["ABC",""]"#)
    }

    @Test func `a time is written in UTC with milliseconds`() {
        let time = UTCTimestamp(secondsSinceEpoch: 1_769_949_000, microseconds: 250_999)
        #expect(written { $0.timestamp(time) } == "\"2026-02-01T12:30:00.250Z\"")
    }

    @Test func `a value reads back as itself`() throws {
        let value: JSONValue = [
            "a": [1, .double(1.5), "x\"y", .null, true], "b": ["c": [:], "d": []], "e\n": .integer(.min),
        ]
        #expect(try JSONParser().parse(Array(written { $0.value(value) }.utf8)) == value)
    }
}
