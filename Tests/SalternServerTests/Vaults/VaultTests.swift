import Cryptography
import HTTPCore
import SalternTesting
import Testing
import VaultLog

@Suite struct VaultTests {
    @Test func `a vault is founded, listed and deleted by its owner`() async throws {
        try await TestApplication.with { app in
            let vault = try await VaultScene(app)
            let listed = try await vault.founder.client.get("/v1/vaults")
            #expect(listed.array("vaults")?.count == 1)
            let shown = try await vault.founder.client.get(vault.path)
            #expect(shown.status == 200)
            #expect(shown.string("role") == "manager")
            #expect(shown.bool("owner") == true)
            #expect(shown.integer("head.number") == 1)
            #expect(shown.integer("revision") == 0)
            #expect(shown.string("head.hash") == Base64.encodeToString(vault.log.head.hash.bytes))
            let log = try await vault.founder.client.get("\(vault.path)/log")
            #expect(log.array("entries")?.count == 1)

            let stranger = try await app.register()
            for path in [vault.path, "\(vault.path)/log", "\(vault.path)/items", "\(vault.path)/changes"] {
                #expect(try await stranger.client.get(path).status == 404, "\(path)")
            }
            #expect(try await stranger.client.delete(vault.path).status == 404)
            #expect(try await app.client.get(vault.path).status == 401)

            _ = try await vault.founder.client.put(
                "\(vault.path)/items/\(Fixtures.uuid())", vault.item(), vault.fields(["If-None-Match": "*"]))
            #expect(try await vault.founder.client.delete(vault.path).status == 204)
            #expect(try await vault.founder.client.get(vault.path).status == 404)
            #expect(try await vault.founder.client.get("/v1/vaults").array("vaults")?.isEmpty == true)
        }
    }

    @Test func `an account founds as many vaults as its plan allows`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_vaults = 1")
            let vault = try await VaultScene(app)
            let entry = try EntryWriter.found(
                by: .random(), named: try #require(MemberName("Ada")), try .generate(), .random(),
                at: try VaultScene.time(app))
            let refused = try await vault.founder.client.post("/v1/vaults", VaultScene.body(entry))
            #expect(refused.status == 403)
            #expect(refused.string("limit") == "vaults")
            #expect(try await vault.founder.client.delete(vault.path).status == 204)
            #expect(try await vault.founder.client.post("/v1/vaults", VaultScene.body(entry)).status == 201)
            #expect(try await vault.founder.client.post("/v1/vaults", VaultScene.body(entry)).status == 200)
        }
    }

    @Test func `a link opens an invitation, and an account joins by it once`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let secrets = try await vault.invite(as: .writer)
            let path = "/v1/invitations/\(secrets.id.text)"
            let token = secrets.token.withUnsafeBytes { "slv_" + Base64URL.encodeToString([UInt8]($0)) }
            let opened = try await app.client.with(token: token).get(path)
            #expect(opened.status == 200, "\(opened)")
            #expect(opened.string("vault") == vault.log.vault.text)
            #expect(opened.array("entries")?.count == 2)
            #expect(opened["keyBox"] == nil)
            let other = "slv_" + Base64URL.encodeToString(SecureRandom.bytes(32))
            #expect(try await app.client.with(token: other).get(path).status == 404)
            #expect(try await app.client.get(path).status == 404)

            let bob = try VaultScene.Sharer(try await app.register())
            let (entry, body) = try vault.joining(secrets, bob)
            let joined = try await bob.client.post("\(path)/acceptance", body)
            #expect(joined.status == 201, "\(joined)")
            #expect(joined.string("keyBox") != nil)
            let again = try await bob.client.post("\(path)/acceptance", body)
            #expect(again.status == 200)
            #expect(again.text == joined.text)
            try vault.note(entry)
            #expect(try await bob.client.get(vault.path).string("role") == "writer")

            // It was for one.
            #expect(try await app.client.with(token: token).get(path).status == 404)
            let carol = try VaultScene.Sharer(try await app.register())
            let refused = try await carol.client.post("\(path)/acceptance", try vault.joining(secrets, carol).body)
            #expect(refused.status == 422)
            #expect(refused.string("reason") == "closedInvitation")
            #expect(try await carol.client.get(vault.path).status == 404)
            // A join behind an earlier head gets no entries by it either.
            let outdated = try vault.joining(secrets, carol).body
            _ = try await vault.invite(as: .reader)
            let late = try await carol.client.post("\(path)/acceptance", outdated)
            #expect(late.string("reason") == "closedInvitation")
            #expect(late["entries"] == nil)
        }
    }

    @Test func `the log grows by its rules, and one of two entries stands`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let first = try vault.entry(.role(bob.member, .reader))
            let second = try vault.entry(.role(bob.member, .manager))
            let path = "\(vault.path)/log"
            let accepted = try await vault.founder.client.post(path, VaultScene.body(first))
            #expect(accepted.status == 200, "\(accepted)")
            #expect(try await vault.founder.client.post(path, VaultScene.body(first)).status == 200)
            let moved = try await vault.founder.client.post(path, VaultScene.body(second))
            #expect(moved.status == 409)
            #expect(moved.string("code") == "membership_moved")
            #expect(moved.array("entries")?.count == 1)
            try vault.note(first)
            #expect(try await bob.client.get(vault.path).string("role") == "reader")
            // A reader may leave, and may not sign as somebody else.
            let forged = try vault.entry(.role(bob.member, .manager))
            let refused = try await bob.client.post(path, VaultScene.body(forged))
            #expect(refused.status == 422)
            let late = try vault.entry(.role(bob.member, .manager), after: 400)
            let skewed = try await vault.founder.client.post(path, VaultScene.body(late))
            #expect(skewed.status == 409)
            #expect(skewed.string("code") == "clock_skew")
            #expect(try await vault.append(.leave, by: bob).status == 200)
            #expect(try await bob.client.get(vault.path).status == 404)
            #expect(try await vault.founder.client.get(vault.path).bool("rotationDue") == true)
            #expect(try await vault.founder.client.post(path, VaultScene.body(first)).status == 200)
        }
    }

    @Test func `a new generation has a box for each member, and refuses items under the old key`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let old = vault.item()
            let (generation, keys) = try vault.newKeys()
            let without = try await vault.append(.rotate(generation))
            #expect(without.status == 422)
            #expect(without.string("code") == "invalid_boxes")
            let rotated = try await vault.append(.rotate(generation), keys)
            #expect(rotated.status == 200, "\(rotated)")
            let log = try await bob.client.get("\(vault.path)/log?after=2")
            #expect(log.array("boxes")?.count == 1)
            #expect(log.array("previousKeys")?.count == 1)
            let path = "\(vault.path)/items/\(Fixtures.uuid())"
            let stale = try await bob.client.put(path, old, vault.fields(["If-None-Match": "*"]))
            #expect(stale.status == 409)
            #expect(stale.string("code") == "stale_generation")
            let batch: JSONValue = ["operations": [BatchTests.put(Fixtures.uuid(), 0, old)]]
            #expect(try await bob.client.post("\(vault.path)/items/batch", batch, vault.fields()).status == 409)
            #expect(try await bob.client.put(path, vault.item(), vault.fields(["If-None-Match": "*"])).status == 201)

            let (next, nextKeys) = try vault.newKeys(without: [bob.member])
            let removed = try await vault.append(.remove(next, [bob.member]), nextKeys)
            #expect(removed.status == 200, "\(removed)")
            #expect(try await bob.client.get(path).status == 404)
            #expect(try await bob.client.put(path, vault.item(), vault.fields(["If-Match": "*"])).status == 404)
            #expect(try await vault.founder.client.get(path).status == 200)
        }
    }

    @Test func `a reader reads, and changes nothing`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let reader = try await vault.join(as: .reader)
            let id = Fixtures.uuid()
            let path = "\(vault.path)/items/\(id)"
            #expect(
                try await vault.founder.client.put(path, vault.item(), vault.fields(["If-None-Match": "*"])).status
                    == 201)
            #expect(try await reader.client.get(path).status == 200)
            #expect(try await reader.client.get("\(vault.path)/changes").array("changes")?.count == 1)
            let other = "\(vault.path)/items/\(Fixtures.uuid())"
            let refusals = [
                try await reader.client.put(path, vault.item(), vault.fields(["If-Match": "*"])),
                try await reader.client.put(other, vault.item(), vault.fields(["If-None-Match": "*"])),
                try await reader.client.delete(path, vault.fields(["If-Match": "*"])),
                try await reader.client.send(.post, "\(path)/restore", fields: vault.fields(["If-Match": "*"])),
                try await reader.client.post(
                    "\(vault.path)/items/batch", ["operations": [BatchTests.put(Fixtures.uuid(), 0, vault.item())]],
                    vault.fields()),
                try await reader.client.post(
                    "\(vault.path)/items/batch", ["operations": [BatchTests.delete(id)]], vault.fields()),
            ]
            for refusal in refusals {
                #expect(refusal.status == 403, "\(refusal)")
                #expect(refusal.string("code") == "role_too_low")
            }
            let format = try await vault.founder.client.put(
                other, ItemTests.item(), vault.fields(["If-None-Match": "*"]))
            #expect(format.status == 422)
            #expect(try await vault.founder.client.get(vault.path).integer("usage.items") == 1)
        }
    }

    @Test func `a manager takes the vault over that its owner has offered`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .manager)
            #expect(try await vault.append(.offer(bob.member)).status == 200)
            let accept = try vault.entry(.accept(vault.log.head.number), by: bob)
            let reply = try await bob.client.post("\(vault.path)/owner", VaultScene.body(accept))
            #expect(reply.status == 200, "\(reply)")
            try vault.note(accept)
            #expect(try await bob.client.get(vault.path).bool("owner") == true)
            #expect(try await vault.founder.client.get(vault.path).bool("owner") == false)
            #expect(try await vault.founder.client.delete(vault.path).status == 403)
            let (generation, keys) = try vault.newKeys(without: [vault.founder.member])
            #expect(try await vault.append(.remove(generation, [vault.founder.member]), by: bob, keys).status == 200)
            #expect(try await bob.client.delete(vault.path).status == 204)
        }
    }

    @Test func `the id of another vault's invitation closes nothing`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let secrets = try await vault.invite(as: .writer)
            var other = try await VaultScene(app)
            // The id is in the log and in links.
            let taken = try other.makeInvitation(as: .reader, id: secrets.id)
            let refused = try await other.founder.client.post("\(other.path)/invitations", taken.body)
            #expect(refused.status == 422)
            #expect(refused.string("reason") == "repeatedID")
            // A log from a restored database can name it all the same.
            try await VaultBackup.moveBase(app)
            try other.note(taken.entry)
            let put: JSONValue = ["entries": [.string(Base64.encodeToString(taken.entry.bytes))]]
            #expect(try await other.founder.client.put("\(other.path)/log", put).status == 200)
            let head: JSONValue = ["head": .object(JSONObject(VaultScene.members(of: other.log.head)))]
            #expect(try await other.founder.client.post("\(other.path)/recovered", head).status == 204)
            try await app.administer("UPDATE saltern.installation SET base_moved_at = NULL")
            #expect(try await other.append(.revoke(secrets.id)).status == 200)
            let token = secrets.token.withUnsafeBytes { "slv_" + Base64URL.encodeToString([UInt8]($0)) }
            #expect(try await app.client.with(token: token).get("/v1/invitations/\(secrets.id.text)").status == 200)
            #expect(try await other.founder.client.delete(other.path).status == 204)
            #expect(try await app.client.with(token: token).get("/v1/invitations/\(secrets.id.text)").status == 200)
        }
    }

    @Test func `a repeated founding returns the vault, also later`() async throws {
        try await TestApplication.with { app in
            let account = try await app.register()
            let entry = try EntryWriter.found(
                by: .random(), named: try #require(MemberName("Ada")), try .generate(), .random(),
                at: try VaultScene.time(app))
            #expect(try await account.client.post("/v1/vaults", VaultScene.body(entry)).status == 201)
            app.clock.advance(by: .seconds(400))
            #expect(try await account.client.post("/v1/vaults", VaultScene.body(entry)).status == 200)
            let other = try await app.register()
            #expect(try await other.client.post("/v1/vaults", VaultScene.body(entry)).code == "clock_skew")
            app.clock.advance(by: .seconds(-400))
            let taken = try await other.client.post("/v1/vaults", VaultScene.body(entry))
            #expect(taken.status == 422)
            #expect(taken.string("reason") == "repeatedID")
        }
    }

    @Test func `a repeated entry of a member that has left returns the same result`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let leave = try vault.entry(.leave, by: bob)
            let path = "\(vault.path)/log"
            #expect(try await bob.client.post(path, VaultScene.body(leave)).status == 200)
            let again = try await bob.client.post(path, VaultScene.body(leave))
            #expect(again.status == 200)
            #expect(again.integer("number") == Int(leave.number.value))
            try vault.note(leave)
            // Another entry of its own is none.
            let rekey = try vault.entry(.revoke(.random()), by: bob)
            #expect(try await bob.client.post(path, VaultScene.body(rekey)).status == 404)
            // Its account is not kept.
            try await app.administer(
                """
                DO $$ BEGIN IF EXISTS (SELECT FROM saltern.vault_members WHERE role = 0 AND holder IS NOT NULL)
                THEN RAISE 'a former member has an account'; END IF; END $$
                """)
        }
    }

    @Test func `a repeated acceptance returns the same result after a rotation, without the key`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let secrets = try await vault.invite(as: .writer)
            let bob = try VaultScene.Sharer(try await app.register())
            let (join, body) = try vault.joining(secrets, bob)
            let path = "/v1/invitations/\(secrets.id.text)/acceptance"
            #expect(try await bob.client.post(path, body).status == 201)
            try vault.note(join)
            let (generation, keys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(generation), keys).status == 200)
            let again = try await bob.client.post(path, body)
            #expect(again.status == 200, "\(again)")
            #expect(again["keyBox"] == nil)
            #expect(again.integer("number") == Int(join.number.value))
        }
    }

    @Test func `a vault and an account leave no rows`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let (generation, keys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(generation), keys).status == 200)
            _ = try await vault.invite(as: .reader)
            let path = "\(vault.path)/items/\(Fixtures.uuid())"
            #expect(try await bob.client.put(path, vault.item(), vault.fields(["If-None-Match": "*"])).status == 201)
            #expect(try await vault.founder.client.delete(path, vault.fields(["If-Match": "*"])).status == 200)
            let second = try await VaultScene(app, vault.founder.account)
            let key = JSONValue.string(vault.founder.account.passwordKey)
            let deleted = try await vault.founder.client.send(
                .delete, "/v1/account", body: TestClient.document(["currentPasswordKey": key, "vaults": "delete"]))
            #expect(deleted.status == 204, "\(deleted)")
            #expect(try await bob.client.get(second.path).status == 404)
            for table in [
                "vaults", "vault_members", "vault_entries", "vault_boxes", "vault_generations", "vault_seals",
                "vault_invitations", "vault_items", "vault_deleted_contents", "vault_replaced_contents",
            ] {
                try await app.administer(
                    """
                    DO $$ BEGIN IF EXISTS (SELECT FROM saltern.\(table)) THEN RAISE 'rows in \(table)'; END IF; END $$
                    """)
            }
        }
    }
}
