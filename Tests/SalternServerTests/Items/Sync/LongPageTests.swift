import Cryptography
import HTTPCore
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

/// Pages and items that are longer than what is read at once.
@Suite struct LongPageTests {
    /// The longest piece of a reply, in bytes of JSON: a window in base64, and what was written when it came.
    private static let pieceLimit = 256 * 1_024

    @Test(arguments: ["/v1/changes?limit=500", "/v1/items?limit=500"])
    func `a long page is made of windows, and is the same page`(_ target: String) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var bodies: [String] = []
            for index in 0..<40 {
                let body = Base64.encodeToString(SecureRandom.bytes(index % 8 == 3 ? 300_000 : 30_000))
                bodies.append(body)
                _ = try await ada.putItem(body: body)
            }
            let pieces = Pieces()
            let page = try await ada.client.get(target, into: pieces)
            #expect(page.status == 200)
            #expect(pieces.count > 15)
            #expect(pieces.longest <= Self.pieceLimit)
            let read = TestResponse(line: pieces.bytes)
            let items = try #require(read.array("changes") ?? read.array("items"))
            #expect(Set(try items.map { try $0.object()["body"]?.string() }) == Set(bodies))
            #expect(read.bool("more") != true)
            #expect(read["nextPage"] == nil)
        }
    }

    @Test(arguments: [1_000, 300_000])
    func `an item that a refusal or a restore brings is whole, and sent while it is read when it is long`(
        count: Int
    ) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let body = Base64.encodeToString(SecureRandom.bytes(count))
            let item = "/v1/items/\(Fixtures.uuid())"
            let content: JSONValue = ["format": "opaque", "body": .string(body)]
            #expect(try await ada.client.put(item, content, ["If-None-Match": "*"]).status == 201)
            let other: JSONValue = ["format": "opaque", "body": .string(Base64.encodeToString(SecureRandom.bytes(64)))]
            let refusals = [
                try await ada.client.put(item, other, ["If-None-Match": "*"]),
                try await ada.client.delete(item, ["If-Match": #""9""#]),
            ]
            _ = try await ada.client.delete(item, ["If-Match": "*"])
            let restored = try await ada.client.send(.post, "\(item)/restore", fields: ["If-Match": "*"])
            for refusal in refusals {
                #expect(refusal.status == 412 && refusal.code == "precondition_failed")
                #expect(refusal.fields["Content-Type"] == "application/problem+json")
                #expect(refusal.fields["ETag"] == #""1""#)
                #expect(refusal.string("current.body") == body)
                #expect(refusal.string("requestId") == refusal.fields["X-Request-Id"])
            }
            #expect(restored.status == 200 && restored.string("body") == body)
            #expect(restored.fields["ETag"] == #""3""#)
            for reply in refusals + [restored] { #expect((reply.length == nil) == (count > ItemInParts.partSize)) }
        }
    }

    @Test func `long pages follow each other without a gap, whatever their windows are`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<50 { _ = try await ada.putItem(body: Base64.encodeToString(SecureRandom.bytes(120_000))) }
            var since = ""
            var revisions: [Int64] = []
            var pages = 0
            while true {
                let page = try await ada.client.get("/v1/changes?limit=500\(since)")
                let changes = try #require(page.array("changes"))
                revisions += try changes.compactMap { try $0.object()["revision"]?.integer() }
                pages += 1
                guard page.bool("more") == true else { break }
                since = "&since=\(try #require(page.string("cursor")))"
            }
            #expect(revisions == Array(1...50))
            // 6 MB are two pages, as they would be without windows.
            #expect(pages == 2)

            var next = ""
            var ids: [String] = []
            repeat {
                let page = try await ada.client.get("/v1/items?limit=20\(next)")
                ids += try #require(page.array("items")).compactMap { try $0.object()["id"]?.string() }
                next = page.string("nextPage").map { "&page=\($0)" } ?? ""
            } while !next.isEmpty
            #expect(ids.count == 50)
            #expect(ids == Set(ids).sorted())
        }
    }

    @Test func `what changes while a page is sent is passed by in none of them`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var items: [String] = []
            for _ in 0..<30 {
                items.append(try await ada.putItem(body: Base64.encodeToString(SecureRandom.bytes(60_000))))
            }
            let (early, late) = (items[1], items[28])
            let pieces = Pieces { piece in
                guard piece == 2 else { return }
                // One that was sent already, and one that was to come.
                for item in [early, late] {
                    _ = try? await ada.client.delete("/v1/items/\(item)", ["If-Match": "*"])
                }
            }
            _ = try await ada.client.get("/v1/changes?limit=500", into: pieces)
            let page = TestResponse(line: pieces.bytes)
            let cursor = try #require(page.string("cursor"))
            let after = try await ada.client.get("/v1/changes?since=\(cursor)")
            let changes = try #require(page.array("changes")) + (try #require(after.array("changes")))
            for item in [early, late] {
                let last = changes.last { (try? $0.object()["id"]?.string()) == item }
                #expect(try last?.object()["deleted"] == .bool(true))
            }
            #expect(try Set(changes.map { try $0.object()["id"]?.string() }) == Set(items))
        }
    }

    @Test func `a page ends where its session does, and can be gone on with`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let other = try await app.logIn(ada)
            for _ in 0..<30 { _ = try await ada.putItem(body: Base64.encodeToString(SecureRandom.bytes(60_000))) }
            let pieces = Pieces { piece in
                if piece == 2 { _ = try? await other.delete("/v1/sessions") }
            }
            _ = try await ada.client.get("/v1/changes?limit=500", into: pieces)
            let page = TestResponse(line: pieces.bytes)
            let sent = try #require(page.array("changes")).count
            #expect((1..<30).contains(sent))
            #expect(page.bool("more") == true)
            let cursor = try #require(page.string("cursor"))
            #expect(try await ada.client.get("/v1/changes?since=\(cursor)").status == 401)
            let rest = try await other.get("/v1/changes?limit=500&since=\(cursor)")
            #expect(rest.array("changes")?.count == 30 - sent)
        }
    }

    @Test func `a long item comes in parts, as JSON with a long title too and as bytes with its length`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let title = Base64.encodeToString(SecureRandom.bytes(200_001))
            let bytes = SecureRandom.bytes(700_000)
            let item = try await ada.putItem(body: Base64.encodeToString(bytes), title: title)
            let pieces = Pieces()
            _ = try await ada.client.get("/v1/items/\(item)", into: pieces)
            let read = TestResponse(line: pieces.bytes)
            #expect(read.string("title") == title)
            #expect(read.string("body") == Base64.encodeToString(bytes))
            #expect(pieces.longest <= Self.pieceLimit)

            let raw = Pieces()
            let reply = try await ada.client.get(
                "/v1/items/\(item)", ["Accept": "application/octet-stream"], into: raw)
            #expect(raw.bytes == bytes)
            #expect(raw.count > 5)
            #expect(reply.length == bytes.count)
        }
    }

    @Test func `a long item that is replaced while it is sent does not end as if it were whole`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let item = try await ada.putItem(body: Base64.encodeToString(SecureRandom.bytes(700_000)))
            let pieces = Pieces { piece in
                guard piece == 2 else { return }
                _ = try? await ada.putItem(item, body: Base64.encodeToString(SecureRandom.bytes(700_000)))
            }
            await #expect(throws: ResponseStreamEnded.self) {
                try await ada.client.get("/v1/items/\(item)", into: pieces)
            }
            #expect(pieces.bytes.count < 700_000)
        }
    }
}

/// Keeps the pieces of a reply, and does something when one has come.
private final class Pieces: ResponseBodyWriter {
    private let pieces = Mutex<[[UInt8]]>([])
    private let look: @Sendable (Int) async -> Void

    init(_ look: @escaping @Sendable (Int) async -> Void = { _ in }) { self.look = look }

    func write(_ bytes: [UInt8]) async throws(ResponseStreamEnded) {
        let count = pieces.withLock { pieces in
            pieces.append(bytes)
            return pieces.count
        }
        await look(count)
    }

    var count: Int { pieces.withLock { $0.count } }
    var longest: Int { pieces.withLock { $0.map(\.count).max() ?? 0 } }
    var bytes: [UInt8] { pieces.withLock { $0.flatMap { $0 } } }
}

extension TestAccount {
    /// Writes an item whose body is base64 of sealed bytes; returns its identifier.
    fileprivate func putItem(
        _ id: String = Fixtures.uuid(), body: String, title: String? = nil
    ) async throws -> String {
        var members: [(name: String, value: JSONValue)] = [
            (name: "format", value: "opaque"), (name: "body", value: .string(body)),
        ]
        if let title { members.append((name: "title", value: .string(title))) }
        var reply = try await client.put("/v1/items/\(id)", .object(JSONObject(members)), ["If-None-Match": "*"])
        if reply.status == 412 {
            reply = try await client.put("/v1/items/\(id)", .object(JSONObject(members)), ["If-Match": "*"])
        }
        #expect(reply.status < 300, "\(reply.status)")
        return id
    }
}
