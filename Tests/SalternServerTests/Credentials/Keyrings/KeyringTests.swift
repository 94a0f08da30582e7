import HTTPCore
import SalternTesting
import Testing

@Suite struct KeyringTests {
    private static func body(_ keyring: String) -> JSONValue { ["keyring": .string(keyring)] }

    @Test func `a keyring is created, read, replaced and returned by log-in`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            #expect(try await ada.client.get("/v1/account/keyring").code == "not_found")
            let first = Fixtures.sealed()
            let created = try await ada.client.put(
                "/v1/account/keyring", Self.body(first), ["If-None-Match": "*"])
            #expect(created.status == 201)
            #expect(created.fields["ETag"] == "\"1\"")
            #expect(created[""] == ["revision": 1, "recovery": ["set": false]])

            let second = Fixtures.sealed()
            let replaced = try await ada.client.put("/v1/account/keyring", Self.body(second), ["If-Match": "\"1\""])
            #expect(replaced.status == 200)
            #expect(replaced.integer("revision") == 2)

            let read = try await ada.client.get("/v1/account/keyring")
            #expect(read.status == 200)
            #expect(read.fields["ETag"] == "\"2\"")
            #expect(read[""] == ["keyring": .string(second), "revision": 2])
            #expect(try await ada.client.get("/v1/account/keyring", ["If-None-Match": "\"2\""]).status == 304)
            #expect(try await ada.client.get("/v1/account/keyring", ["If-None-Match": "\"1\""]).status == 200)
            #expect(try await ada.client.get("/v1/account/keyring", ["If-Match": "\"2\""]).status == 200)
            let other = try await ada.client.get("/v1/account/keyring", ["If-Match": "\"1\""])
            #expect(other.status == 412)
            #expect(other.code == "precondition_failed")
            #expect(other.integer("current.revision") == 2)

            let login = try await app.client.post(
                "/v1/sessions", ["userid": .string(ada.userid), "passwordKey": .string(ada.passwordKey)])
            #expect(login.string("keyring") == second)
            #expect(login.integer("keyringRevision") == 2)
        }
    }

    @Test func `a precondition that does not hold brings the keyring as it is`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for condition in ["*", "\"1\""] {
                let refused = try await ada.client.put(
                    "/v1/account/keyring", Self.body(Fixtures.sealed()), ["If-Match": condition])
                #expect(refused.status == 412)
                #expect(refused["current"] == .null)
                #expect(refused.fields["ETag"] == nil)
            }
            let keyring = Fixtures.sealed()
            _ = try await ada.client.put("/v1/account/keyring", Self.body(keyring), ["If-None-Match": "*"])
            for fields in [["If-None-Match": "*"], ["If-Match": "\"2\""], ["If-Match": "\"7\""]] {
                let refused = try await ada.client.put("/v1/account/keyring", Self.body(Fixtures.sealed()), fields)
                #expect(refused.status == 412)
                #expect(refused.code == "precondition_failed")
                #expect(refused["current"] == ["keyring": .string(keyring), "revision": 1])
                #expect(refused.fields["ETag"] == "\"1\"")
            }
            let forced = try await ada.client.put(
                "/v1/account/keyring", Self.body(Fixtures.sealed()), ["If-Match": "*"])
            #expect(forced.integer("revision") == 2)
        }
    }

    @Test func `what is stored already is a success, whatever the precondition says`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let keyring = Fixtures.sealed()
            _ = try await ada.client.put("/v1/account/keyring", Self.body(keyring), ["If-None-Match": "*"])
            for fields in [["If-None-Match": "*"], ["If-Match": "\"5\""], ["If-Match": "*"]] {
                let again = try await ada.client.put("/v1/account/keyring", Self.body(keyring), fields)
                #expect(again.status == 200)
                #expect(again.integer("revision") == 1)
            }
        }
    }

    @Test func `bad requests are refused with their code`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let good = Self.body(Fixtures.sealed())
            #expect(try await ada.client.put("/v1/account/keyring", good).code == "precondition_required")
            let both = try await ada.client.put(
                "/v1/account/keyring", good, ["If-Match": "*", "If-None-Match": "*"])
            #expect(both.code == "malformed_precondition")
            let rows: [(JSONValue, String)] = [
                ([:], "missing_member"), (["keyring": .null], "wrong_type"), (["keyring": "%"], "not_base64"),
                (["keyring": .string(Fixtures.sealed()), "revision": 1], "unknown_member"),
                (["keyring": .string(Fixtures.sealed(plaintext: 65_536))], "too_long"),
                (["keyring": "VGhpcyBpcyBub3QgZW5jcnlwdGVkIGF0IGFsbC4="], "not_encrypted"),
            ]
            for (body, code) in rows {
                let refused = try await ada.client.put("/v1/account/keyring", body, ["If-Match": "*"])
                #expect(refused.code == code, "\(refused)")
            }
            #expect(try await app.client.get("/v1/account/keyring").status == 401)
            #expect(try await app.client.put("/v1/account/keyring", good, ["If-Match": "*"]).status == 401)
        }
    }

    @Test func `of many who replace the same keyring one wins`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            for round in 1...8 {
                let condition = round == 1 ? ["If-None-Match": "*"] : ["If-Match": "\"\(round - 1)\""]
                let replies = try await withThrowingTaskGroup(of: (String, TestResponse).self) { group in
                    for _ in 0..<12 {
                        group.addTask {
                            let keyring = Fixtures.sealed()
                            return (
                                keyring,
                                try await ada.client.put("/v1/account/keyring", Self.body(keyring), condition)
                            )
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                let winners = replies.filter { $0.1.status < 300 }
                #expect(winners.count == 1)
                #expect(replies.filter { $0.1.status == 412 }.count == 11)
                let stored = try await ada.client.get("/v1/account/keyring")
                #expect(stored.string("keyring") == winners.first?.0)
                #expect(stored.integer("revision") == round)
            }
        }
    }
}
