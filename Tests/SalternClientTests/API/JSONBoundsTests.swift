import Foundation
import Testing

@testable import SalternClient

/// JSON of which the decoder would make many times its length in memory.
@Suite struct JSONBoundsTests {
    private static let length = 2 << 20

    private func include(_ text: String) -> Bool { JSONBounds.include(Array(text.utf8)) }

    private func repeated(_ piece: String, in head: String, _ tail: String) -> String {
        head + String(repeating: piece, count: Self.length / piece.utf8.count) + tail
    }

    @Test func `more values than any reply of that length has are refused`() {
        for piece in ["0,", "{},", "[],", "null,", "\"\",", "{\"a\":0},"] {
            #expect(!include(repeated(piece, in: "[", "0]")), "\(piece)")
        }
        #expect(!include(repeated("\"a\":0,", in: "{", "\"a\":0}")))
    }

    @Test func `depth is bounded`() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(include(nested(JSONBounds.depthLimit)))
        #expect(!include(nested(JSONBounds.depthLimit + 1)))
        #expect(!include(repeated("{\"a\":", in: "", "")))
    }

    @Test func `what is in a string does not count`() {
        for piece in ["0,", "[", "{", "\\\"[,", "\\\\", "\\u005b"] {
            #expect(include(repeated(piece, in: "{\"a\":\"", "\"}")), "\(piece)")
        }
        #expect(!include("{\"a\":\"\\\""))
        // The string ends behind an escaped backslash: what follows counts.
        #expect(!include(repeated("[", in: "[\"\\\\\",", "")))
    }

    @Test func `other encodings than UTF-8 are refused`() throws {
        let text = #"{"cursor":"a","changes":[],"more":false}"#
        #expect(throws: Never.self) { try SalternAPI.decode(ChangePage.self, Array(text.utf8)) }
        for encoding in [String.Encoding.utf16LittleEndian, .utf16, .utf32] {
            let bytes = try #require(text.data(using: encoding))
            #expect(throws: APIError.self) { try SalternAPI.decode(ChangePage.self, [UInt8](bytes)) }
        }
    }

    @Test func `the longest honest replies are taken`() throws {
        let conflict = #"{"index":0,"id":"1f9a5a5c-5c0e-4a4c-9f0e-1f1d1c1b1a19","code":"x","revision":1},"#
        #expect(include(repeated(conflict, in: #"{"conflicts":["#, "{}]}")))
        let head = #"{"id":"1f9a5a5c-5c0e-4a4c-9f0e-1f1d1c1b1a19","revision":1},"#
        #expect(include(repeated(head, in: #"{"results":["#, "{}]}")))
    }
}
