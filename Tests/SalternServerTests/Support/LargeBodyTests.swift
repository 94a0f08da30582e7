import Cryptography
import HTTPCore
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

@Suite struct LargeBodyTests {
    @Test func `a bomb of values is refused where a document has more than its route takes`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bomb = Array((Array(repeating: #"{"":0}"#, count: 100_000).joined(separator: ",")).utf8)
            for (method, target, limit) in [
                (HTTPMethod.post, "/v1/items/batch", WriteBatch.valueLimit),
                (.put, "/v1/items/\(Fixtures.uuid())", JSONParser.standardValueLimit),
            ] {
                let reply = try await ada.client.send(
                    method, target, fields: ["If-None-Match": "*"], body: Array("[".utf8) + bomb + Array("]".utf8))
                #expect(reply.status == 400)
                #expect(reply.code == "json_too_many_values")
                #expect(reply.integer("limit") == limit)
            }
        }
    }

    @Test func `the largest batch has no more values than its route takes`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let operations: [JSONValue] = (0..<WriteBatch.operationLimit).map { _ in
                [
                    "op": "put", "id": .string(Fixtures.uuid()), "ifRevision": 0, "format": "aes-256-gcm",
                    "collection": "notes", "iterations": 1000, "title": .string(Fixtures.sealed()),
                    "body": .string(Fixtures.sealed()),
                ]
            }
            #expect(try await ada.client.post("/v1/items/batch", ["operations": .array(operations)]).status == 200)
        }
    }

    @Test func `others on the loop have their turns while a large body is parsed and decoded`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            let text = Base64.encodeToString(SecureRandom.bytes(1_400_000))
            let body = Array(#"{"format":"opaque","body":"\#(text)","more":1}"#.utf8)
            let target = "/v1/items/\(Fixtures.uuid())"
            let (reply, turns) = try await app.run {
                try await withThrowingTaskGroup(of: Int.self) { group in
                    let isDone = Atomic<Bool>(false)
                    group.addTask {
                        var turns = 0
                        while !isDone.load(ordering: .relaxed) {
                            turns += 1
                            await Task.yield()
                        }
                        return turns
                    }
                    let reply = try await ada.client.send(.put, target, fields: ["If-None-Match": "*"], body: body)
                    isDone.store(true, ordering: .relaxed)
                    return (reply, try await group.next() ?? 0)
                }
            }
            // It fails at its last member, so nobody has waited for the database.
            #expect(reply.code == "unknown_member")
            // Parsing and decoding are as many pieces each.
            #expect(turns >= 2 * (body.count / Pace.slice))
        }
    }

    @Test func `what the precondition found is written once, as it is read`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let item = try await ada.createItem()
            let read = try await ada.client.get(item)
            let refused = try await ada.client.put(
                item, ["format": "aes-256-gcm", "body": .string(Fixtures.sealed())], ["If-Match": "\"999\""])
            #expect(refused.status == 412)
            #expect(refused.text.contains(#""current":\#(read.text)}"#))
        }
    }
}
