import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Documents that are read piece by piece, and the line in which a file is wrong.
@Suite struct LongDocumentTests {
    private static let begin = #"{"type":"documents","version":1}"#

    private func source(_ text: String) -> AttachmentSource { AttachmentSource(SecureBytes(copying: Array(text.utf8))) }

    private func lines(_ lines: String...) -> String { lines.map { $0 + "\n" }.joined() }

    private func end(_ count: Int) -> String { #"{"type":"end","documents":\#(count)}"# }

    private func document(_ member: String, id: ItemID = .random()) -> String {
        #"{"type":"document","id":"\#(id)","collection":"notes","title":"t",\#(member)}"#
    }

    private func content(_ member: String) throws -> ImportedContent {
        var lines = DocumentLines(source(lines(Self.begin, document(member), end(1))))
        _ = try lines.next()
        return try #require(try lines.next()?.document).content
    }

    /// Reads content in pieces of one length.
    private func bytes(_ content: ImportedContent, _ length: Int) throws -> [UInt8] {
        let source = content.source
        var bytes: [UInt8] = []
        for offset in stride(from: 0, to: source.byteCount, by: length) {
            let count = min(length, Int(source.byteCount - offset))
            bytes += try source.read(offset, count).withUnsafeBytes { [UInt8]($0) }
        }
        return bytes
    }

    @Test(arguments: [524_288, 99_991])
    func `long text is read with every escape, at any offset`(_ length: Int) throws {
        let parts = [
            (#"\u0041"#, "A"), (#"\ud83d\ude00"#, "😀"), ("ä😀€", "ä😀€"), (#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (#"\u20AC\u0000"#, "€\u{0}"), ("plain text ", "plain text "),
        ]
        var random = SeededGenerator(seed: 7)
        var (raw, expected) = ("", "")
        while raw.utf8.count <= 2 << 20 {
            let part = parts[Int.random(in: 0..<parts.count, using: &random)]
            raw += part.0
            expected += part.1
        }
        let content = try content("\"text\" : \"\(raw)\"")
        #expect(content.whole == nil)
        #expect(content.digest == SHA256.hash(Array(expected.utf8)).bytes)
        #expect(SHA256.hash(try bytes(content, length)) == SHA256.hash(Array(expected.utf8)))
    }

    @Test(arguments: 0...2)
    func `long bytes are read at any offset, also when a slash is escaped`(_ rest: Int) throws {
        var random = SeededGenerator(seed: 3)
        var expected: [UInt8] = []
        while expected.count < 1_800_000 { withUnsafeBytes(of: random.next()) { expected.append(contentsOf: $0) } }
        expected += repeatElement(0xFF, count: rest)
        let base64 = Base64.encodeToString(expected)
        for raw in [base64, base64.replacing("/", with: #"\/"#)] {
            let content = try content("\"data\":\"\(raw)\"")
            #expect(content.whole == nil)
            #expect(content.digest == SHA256.hash(expected).bytes)
            #expect(SHA256.hash(try bytes(content, 524_288)) == SHA256.hash(expected))
        }
    }

    private func fault(_ source: AttachmentSource) -> DocumentFault? {
        do throws(VaultError) { try DocumentLines.check(source) } catch {
            if case .invalidDocuments(let fault) = error { return fault }
        }
        return nil
    }

    @Test func `the line is named in which a file is wrong`() throws {
        let good = document(#""text":"a""#)
        let long = String(repeating: "a", count: 3 << 20)
        let faults: [(String, Int, DocumentFault.Reason)] = [
            ("", 1, .noBeginning), ("\n\n", 2, .noBeginning), (lines(Self.begin, good), 2, .noEnd),
            (lines("", Self.begin, "", good, "{}"), 5, .noDocument), (lines(Self.begin, "nonsense"), 2, .noDocument),
            (lines(Self.begin, good, "", " \t\r", end(2)), 5, .wrongCount),
            (lines(Self.begin, end(0), "", good), 4, .afterEnd),
            (lines(Self.begin, end(0), "nonsense"), 3, .afterEnd), (lines(good, end(1)), 1, .noBeginning),
            (lines(Self.begin.replacing("1", with: "2"), end(0)), 1, .noBeginning),
            (lines(Self.begin, "", document("\"text\":\"\(long)\u{1}\"")), 3, .noDocument),
            (lines(Self.begin, document(#""text":"\#(long)\ud800""#)), 2, .noDocument),
            (lines(Self.begin, document(#""text":"\#(long)","data":"\#(long)""#)), 2, .noDocument),
            (lines(Self.begin, document(#""text":"\#(long)","text":"\#(long)""#)), 2, .noDocument),
            (lines(Self.begin, document(#""data":"\#(long)=AAA""#)), 2, .noDocument),
            (lines(Self.begin, document(#""data":"\#(long)A""#)), 2, .noDocument),
            (lines(Self.begin, document(#""note":"\#(long)""#)), 2, .noDocument),
            (lines(Self.begin, String(document(#""text":"\#(long)""#).dropLast())), 2, .noDocument),
            (lines(Self.begin, String(document(#""text":"\#(long)""#).dropLast(2))), 2, .noDocument),
        ]
        for (text, line, reason) in faults {
            #expect(fault(source(text)) == DocumentFault(line: line, reason: reason), "\(text.prefix(200))")
        }
        for text in [
            lines(Self.begin, good, end(1)), lines("", Self.begin, "", "\r", good, "", end(1), "", " "),
            "\u{feff}" + lines(Self.begin, good, end(1)), Self.begin + "\r\n" + good + "\r\n" + end(1),
            lines(Self.begin, document("\"text\":\"\(long)\"") + "\r", end(1)),
        ] {
            #expect(fault(source(text)) == nil, "\(text.prefix(200))")
        }
    }

    @Test func `a file that is not UTF-8 is refused with the line`() throws {
        let text = lines(Self.begin, document(#""text":"ä""#), end(1))
        for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32] {
            let data = try #require(text.data(using: encoding))
            #expect(
                fault(AttachmentSource(SecureBytes(copying: Array(data))))
                    == DocumentFault(line: 1, reason: .notUTF8))
        }
        let latin1 = try #require(text.data(using: .isoLatin1))
        #expect(
            fault(AttachmentSource(SecureBytes(copying: Array(latin1)))) == DocumentFault(line: 2, reason: .notUTF8))
        for bad in [[0xff], [0xc3]] as [[UInt8]] {
            let long = Array("\n{\"text\":\"".utf8) + Array(repeating: 0x61, count: 3 << 20) + bad + Array("\"}\n".utf8)
            let bytes = Array(Self.begin.utf8) + long
            #expect(
                fault(AttachmentSource(SecureBytes(copying: bytes))) == DocumentFault(line: 2, reason: .noDocument))
            let document = Array(document(#""text":"@""#).replacing("@\"", with: "").utf8)
            let whole =
                Array(Self.begin.utf8) + [0x0a] + document.dropLast()
                + Array(repeating: 0x61, count: 3 << 20) + bad + Array("\"}\n".utf8)
            #expect(
                fault(AttachmentSource(SecureBytes(copying: whole))) == DocumentFault(line: 2, reason: .notUTF8))
        }
    }

    @Test func `long text and bytes go from one account to another, and nothing is imported twice`() async throws {
        try await LiveServer.with { server in
            let password = Password("password")
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password)
            let text = String(repeating: "Buy \"salt\" \\ ä😀\u{1}\n", count: 100_000)
            // Text up to its last byte, which is none.
            let contents = [
                Array(text.utf8), Array(text.utf8) + [0xff], Array(text.utf8) + [0xc3],
                [UInt8](repeating: 0xff, count: 2_000_000),
            ].map { SecureBytes(copying: $0) }
            var ids: [ItemID] = []
            for content in contents {
                let body = try await vault.attach(AttachmentSource(content), properties: ["text": "", "data": ""])
                    .body()
                ids.append(
                    try await vault.put(PlainItem(title: "\"text\":\"\"", body: body), .random(), in: "files"))
            }
            let file = URL(filePath: phone.folder.path + "/documents.ndjson")
            #expect(try await vault.exportDocuments(to: file) == DocumentExport(documents: 4))
            #expect(try await vault.importDocuments(from: file) == DocumentImport(unchanged: 4))
            let laptop = try Device("laptop", server)
            let other = try await Vault.signUp(laptop.settings, userid: "eve@example.org", password: password)
            #expect(try await other.importDocuments(from: file) == DocumentImport(created: 4))
            #expect(try await other.importDocuments(from: file) == DocumentImport(unchanged: 4))
            for (id, content) in zip(ids, contents) { #expect(try await other.wholeItem(id)?.body == content) }
            // A chunk that is gone in the middle: the item is named, and the file is whole.
            try await vault.removeAttachmentCopies()
            let body = try #require(try await vault.item(ids[1])?.body)
            let manifest = SalternClient.Attachment(body)
            let gone = try #require(manifest?.chunks[1])
            phone.link.setRewrite { request, reply in
                request.method == .get && request.target.contains(gone.description)
                    ? HTTPReply(head: HTTPReplyHead(status: 404, fields: []), body: Self.notFound) : reply
            }
            let next = file.deletingLastPathComponent().appending(path: "next")
            #expect(
                try await vault.exportDocuments(to: next) == DocumentExport(documents: 3, unreadable: [ids[1]]))
            try DocumentLines.check(AttachmentSource(file: next))
        }
    }

    private static let notFound = Array(
        #"{"type":"about:blank","title":"Not found","status":404,"code":"not_found"}"#.utf8)

    @Test func `what is too long for an item is refused before it is read`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(
                phone.settings, userid: "ada@example.org", password: Password("password"))
            let read = Mutex(Int64(0))
            let source = AttachmentSource(byteCount: 1 << 40) { _, count in
                read.withLock { $0 += Int64(count) }
                return SecureBytes(copying: [UInt8](repeating: 7, count: count))
            }
            await #expect { try await vault.body(holding: source) } throws: {
                if case VaultError.noRoom = $0 { true } else { false }
            }
            #expect(read.withLock { $0 } < 100)
            // Long content that begins as a manifest does is sent in pieces.
            let marked = Array("saltern-attachment-1\n".utf8) + [UInt8](repeating: 7, count: 2_000_000)
            let body = try await vault.body(holding: AttachmentSource(SecureBytes(copying: marked)))
            #expect(try await vault.wholeContent(of: body) == SecureBytes(copying: marked))
        }
    }
}
