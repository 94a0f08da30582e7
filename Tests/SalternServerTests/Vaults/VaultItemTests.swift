import HTTPCore
import SalternTesting
import Testing
import VaultLog

/// Items of a vault and of an account have the same behaviour: one script of requests, two owners.
@Suite struct VaultItemTests {
    @Test func `items of a vault answer as those of an account`() async throws {
        try await TestApplication.with { app in
            let vault = try await VaultScene(app)
            let account = try await app.register()
            let ids = (0..<8).map { _ in Fixtures.uuid() }
            let items = (0..<12).map { vault.item(bytes: 64 * (1 + $0 % 3)) }
            let long = vault.item(bytes: 262_144)
            var texts: [[String]] = []
            for (client, root) in [(account.client, "/v1"), (vault.founder.client, vault.path)] {
                texts.append(try await Self.run(client, root, ids, items, long))
            }
            for (own, shared) in zip(texts[0], texts[1]) { #expect(own == shared) }
            #expect(texts[0].count == texts[1].count)
        }
    }

    private static func run(
        _ client: TestClient, _ root: String, _ ids: [String], _ items: [JSONValue], _ long: JSONValue
    ) async throws -> [String] {
        var texts: [String] = []
        func note(_ reply: TestResponse) {
            texts.append("\(reply.status) \(reply.text.replacing(/"requestId":"[0-9a-f]+"/, with: ""))")
        }
        func path(_ index: Int) -> String { "\(root)/items/\(ids[index])" }
        // An account's items have no head.
        let head = ["Vault-Head": "1"]
        let absent = ["If-None-Match": "*", "Vault-Head": "1"]
        let present = ["If-Match": "*", "Vault-Head": "1"]
        for index in 0..<3 { note(try await client.put(path(index), items[index], absent)) }
        note(try await client.put(path(0), items[0], absent))
        note(try await client.put(path(0), items[3], absent))
        note(try await client.put(path(0), items[3], ["If-Match": "\"1\"", "Vault-Head": "1"]))
        note(try await client.put(path(0), items[4], ["If-Match": "\"1\", \"4\"", "Vault-Head": "1"]))
        note(try await client.put(path(5), items[4], present))
        note(try await client.put(path(1), long, present))
        note(try await client.get(path(1)))
        note(try await client.put(path(1), items[5], present))
        note(try await client.get(path(0)))
        note(try await client.get("\(path(0))/versions"))
        note(try await client.get("\(path(0))/versions/1"))
        note(try await client.delete(path(0), present))
        note(try await client.delete(path(0), present))
        note(try await client.get(path(0)))
        note(try await client.send(.post, "\(path(0))/restore", fields: present))
        note(try await client.send(.post, "\(path(0))/restore", fields: present))
        note(try await client.send(.post, "\(path(7))/restore", fields: present))
        note(try await client.delete(path(2), ["If-Match": "\"99\"", "Vault-Head": "1"]))
        let puts: JSONValue = [
            "operations": [BatchTests.put(ids[3], 0, items[6]), BatchTests.put(ids[0], nil, items[7])]
        ]
        note(try await client.post("\(root)/items/batch", puts, head))
        note(try await client.post("\(root)/items/batch", puts, head))
        let mixed: JSONValue = [
            "operations": [BatchTests.put(ids[4], 0, items[8]), BatchTests.delete(ids[2]), BatchTests.delete(ids[1])]
        ]
        note(try await client.post("\(root)/items/batch", mixed, head))
        note(try await client.post("\(root)/items/batch", ["operations": [BatchTests.delete(ids[6])]], head))
        note(try await client.put(path(2), items[9], absent))
        note(try await client.get("\(root)/items"))
        note(try await client.get("\(root)/items?fields=meta&collection=notes"))
        note(try await client.get("\(root)/changes?tombstones=all"))
        note(try await client.get("\(root)/changes?fields=meta&limit=2"))
        return texts
    }

    @Test func `limits of a vault are those of its owner's plan`() async throws {
        try await TestApplication.with { app in
            let vault = try await VaultScene(app)
            try await app.administer("UPDATE saltern.plans SET vault_items = 2, max_items = 5")
            func put() async throws -> TestResponse {
                try await vault.founder.client.put(
                    "\(vault.path)/items/\(Fixtures.uuid())", vault.item(), vault.fields(["If-None-Match": "*"]))
            }
            #expect(try await put().status == 201)
            #expect(try await put().status == 201)
            let refused = try await put()
            #expect(refused.status == 403)
            #expect(refused.string("limit") == "items")
            #expect(refused.integer("allowed") == 2)
            #expect(try await vault.founder.client.get("/v1/account").integer("usage.items") == 0)
        }
    }

    @Test func `a writer deletes a quarter of the vault's bytes in seven days, and a manager any`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            // Two of the items are within a quarter.
            try await app.administer("UPDATE saltern.plans SET vault_bytes = 1400")
            let item = vault.item(bytes: 128)
            func put() async throws -> String {
                let path = "\(vault.path)/items/\(Fixtures.uuid())"
                let reply = try await bob.client.put(path, item, vault.fields(["If-None-Match": "*"]))
                #expect(reply.status == 201, "\(reply)")
                return path
            }
            let fields = vault.fields(["If-Match": "*"])
            let paths = try await [put(), put(), put(), put()]
            #expect(try await bob.client.delete(paths[0], fields).status == 200)
            // A repeated or failed deletion does not count.
            #expect(try await bob.client.delete(paths[0], fields).status == 200)
            #expect(try await bob.client.delete(paths[1], vault.fields(["If-Match": "\"1\""])).status == 412)
            #expect(try await bob.client.delete(paths[1], fields).status == 200)
            let refused = try await bob.client.delete(paths[2], fields)
            #expect(refused.status == 409)
            #expect(refused.code == "trash_full")
            let id = try #require(paths[2].split(separator: "/").last)
            let batch: JSONValue = ["operations": [BatchTests.delete(String(id))]]
            #expect(try await bob.client.post("\(vault.path)/items/batch", batch, fields).code == "trash_full")
            // Others delete, and writing goes on.
            #expect(try await vault.founder.client.delete(paths[3], fields).status == 200)
            #expect(try await bob.client.put(paths[2], vault.item(bytes: 64), fields).status == 200)
            app.clock.advance(by: .seconds(7 * 86_400))
            let later = try await app.logIn(bob.account)
            #expect(try await later.delete(paths[2], fields).status == 200)
        }
    }

    @Test func `a writer deletes a quarter of the vault's items in seven days, and no more as another member`()
        async throws
    {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let account = try await app.register()
            let bob = try await vault.join(as: .writer, with: account)
            // Two items are a quarter.
            try await app.administer("UPDATE saltern.plans SET vault_items = 8")
            func put(_ member: VaultScene.Sharer) async throws -> String {
                let path = "\(vault.path)/items/\(Fixtures.uuid())"
                let reply = try await member.client.put(path, vault.item(), vault.fields(["If-None-Match": "*"]))
                #expect(reply.status == 201, "\(reply)")
                return path
            }
            let paths = try await [put(bob), put(bob), put(bob)]
            let fields = vault.fields(["If-Match": "*"])
            #expect(try await bob.client.delete(paths[0], fields).status == 200)
            #expect(try await bob.client.delete(paths[1], fields).status == 200)
            #expect(try await bob.client.delete(paths[2], fields).code == "trash_full")
            #expect(try await vault.append(.leave, by: bob).status == 200)
            let again = try await vault.join(as: .writer, with: account)
            let later = try await again.client.delete(paths[2], vault.fields(["If-Match": "*"]))
            #expect(later.code == "trash_full", "\(later)")
        }
    }
}
