import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Content that is text or base64 in JSON, in pieces of any length.
@Suite struct ContentFormTests {
    private static let texts = [
        "", "a", "Buy salt.\n", "ä", "€€€€", "😀😀", "\u{1}\u{1f}\"\\/\u{7f}\u{2028}", "e\u{301}\u{301}x",
        "\u{fffd}\u{10ffff}",
    ]
    private static let bytes: [[UInt8]] = [
        [0xff], [0xc3], [0x41, 0xe2, 0x82], [0xf0, 0x9f, 0x98], [0x80], [0xe2, 0x41, 0x41, 0x41], [0xc0, 0x80],
        [0xed, 0xa0, 0x80],
        [0xf5, 0x80, 0x80, 0x80, 0x41], [0xf0, 0x80, 0x80, 0x80], [0x41, 0xbf, 0xbf, 0xbf, 0xbf],
    ]

    /// Cuts bytes in pieces of one length.
    private func pieces(_ bytes: [UInt8], _ length: Int) -> [SecureBytes] {
        stride(from: 0, to: bytes.count, by: length).map {
            SecureBytes(copying: bytes[$0..<min($0 + length, bytes.count)])
        }
    }

    private func written(_ bytes: [UInt8], _ length: Int, _ form: JSONContent.Form) -> [UInt8]? {
        var content = JSONContent(form)
        var json: [UInt8] = [UInt8(ascii: "\"")]
        for piece in pieces(bytes, length) {
            guard let characters = content.append(piece) else { return nil }
            json += characters
        }
        return content.end().map { json + $0 + [UInt8(ascii: "\"")] }
    }

    @Test(arguments: 1...7)
    func `pieces of text are the text, and what is not UTF-8 is none`(_ length: Int) throws {
        for text in Self.texts {
            let json = try #require(written(Array(text.utf8), length, .text))
            let decoded = try JSONDecoder().decode(String.self, from: Data(json))
            #expect(Array(decoded.utf8) == Array(text.utf8))
        }
        for bytes in Self.bytes {
            #expect(written(bytes, length, .text) == nil, "\(bytes)")
            #expect(written(Array("ab".utf8) + bytes, length, .text) == nil, "\(bytes)")
        }
    }

    @Test(arguments: 1...7)
    func `pieces of bytes are canonical base64`(_ length: Int) throws {
        for bytes in Self.bytes + Self.texts.map({ Array($0.utf8) }) {
            #expect(written(bytes, length, .data) == Array("\"\(Base64.encodeToString(bytes))\"".utf8))
        }
    }

    @Test func `content goes where its member is, whatever the other members are called`() throws {
        let head = #"{"collection":"a","data":"","id":"b","properties":{"data":"","text":""},"title":"\"text\":\"\""}"#
        let parts = try #require(JSONContent.split(Array(head.utf8), at: .data))
        #expect(parts.head == Array(#"{"collection":"a","data":""#.utf8))
        let other = #"{"properties":{"data":"","text":""},"text":"","title":"\"text\":\"\"","type":"document"}"#
        let found = try #require(JSONContent.split(Array(other.utf8), at: .text))
        #expect(found.tail == Array(#"","title":"\"text\":\"\"","type":"document"}"#.utf8))
    }
}
