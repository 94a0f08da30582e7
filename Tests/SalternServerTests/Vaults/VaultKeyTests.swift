import Cryptography
import HTTPCore
import SalternTesting
import Testing
import VaultLog

/// Boxes, seen heads, lists of seals, and the heads of writers.
@Suite struct VaultKeyTests {
    private static func mark() throws -> EditMark { try #require(EditMark(SecureRandom.bytes(32))) }

    @Test func `a manager makes boxes again, and a member removes one that does not open`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let (generation, keys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(generation), keys).status == 200)
            #expect(try await bob.client.get(vault.path).bool("boxMissing") == false)
            let path = "\(vault.path)/boxes"
            #expect(try await bob.client.delete("\(path)/mine").status == 204)
            #expect(try await bob.client.get(vault.path).bool("boxMissing") == true)
            #expect(try await bob.client.get("\(vault.path)/log").array("boxes")?.isEmpty == true)

            let box: JSONValue = ["member": .string(bob.member.text), "box": "AQID"]
            let key: JSONValue = ["generation": 2, "key": "AQID"]
            let body: JSONValue = ["generation": 2, "boxes": [box], "previousKeys": [key]]
            #expect(try await bob.client.put(path, body).status == 403)
            #expect(try await vault.founder.client.put(path, body).status == 204)
            let log = try await bob.client.get("\(vault.path)/log")
            #expect(log.array("boxes") == [["generation": 2, "box": "AQID"]])
            #expect(log.array("previousKeys") == [["generation": 2, "key": "AQID"]])

            let early: JSONValue = ["generation": 1, "boxes": [box]]
            #expect(try await vault.founder.client.put(path, early).code == "stale_generation")
            let stranger: JSONValue = ["member": .string(MemberID.random().text), "box": "AQID"]
            let wrong: JSONValue = ["generation": 2, "boxes": [stranger]]
            #expect(try await vault.founder.client.put(path, wrong).code == "invalid_boxes")
            let twice: JSONValue = ["generation": 2, "boxes": [box, box]]
            #expect(try await vault.founder.client.put(path, twice).code == "invalid_boxes")
            let first: JSONValue = ["generation": 2, "previousKeys": [["generation": 1, "key": "AQID"]]]
            #expect(try await vault.founder.client.put(path, first).code == "invalid_boxes")
        }
    }

    @Test func `the latest signed head that a member has seen is listed`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let early = vault.log.head
            let bob = try await vault.join(as: .reader)
            let path = "\(vault.path)/seen"
            func put(_ head: Head, by sharer: VaultScene.Sharer) async throws -> TestResponse {
                let signer = try MemberSigner(sharer.member, of: vault.log.vault, sharer.keys)
                let statement = try MemberStatement(.seen, by: signer, head)
                return try await bob.client.put(path, VaultScene.body(head, statement.signature))
            }
            /// The number of the only head that is listed.
            func seen() async throws -> Int64? {
                let members = try await vault.founder.client.get(vault.path).array("members") ?? []
                let heads = try members.compactMap { try $0.object()["seen"]?.object()["number"]?.integer() }
                #expect(heads.count < 2)
                return heads.first
            }
            #expect(try await seen() == nil)
            #expect(try await put(vault.log.head, by: bob).status == 204)
            #expect(try await seen() == 3)
            // An earlier head changes nothing.
            #expect(try await put(early, by: bob).status == 204)
            #expect(try await seen() == 3)
            // The signature is another member's, or the head is not in the log.
            #expect(try await put(vault.log.head, by: vault.founder).code == "seen_refused")
            let number = try #require(EntryNumber(9))
            #expect(try await put(Head(number: number, hash: early.hash), by: bob).code == "seen_refused")
            #expect(try await put(Head(number: .first, hash: vault.log.head.hash), by: bob).code == "seen_refused")
        }
    }

    @Test func `a seal is stored with its list`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let carol = try await vault.join(as: .reader)
            let (generation, keys) = try vault.newKeys(without: [bob.member])
            #expect(try await vault.append(.remove(generation, [bob.member]), keys).status == 200)
            let list = SealList([VaultItemID.random(): try Self.mark()])
            let seal = EntryPayload.seal(Seal(of: bob.member, list))
            #expect(try await vault.append(seal).code == "invalid_list")
            let other = SealList([VaultItemID.random(): try Self.mark()])
            #expect(try await vault.append(seal, VaultScene.member(of: other)).code == "invalid_list")
            let sealed = try await vault.append(seal, VaultScene.member(of: list))
            #expect(sealed.status == 200, "\(sealed)")
            let number = vault.log.head.number.value
            let path = "\(vault.path)/seals/\(number)"
            #expect(try await carol.client.get(path).string("list") == Base64.encodeToString(list.bytes))
            #expect(try await carol.client.get("\(vault.path)/log").array("seals")?.count == 1)
            #expect(try await carol.client.get("\(vault.path)/seals/\(number - 1)").status == 404)
            try await app.administer("DELETE FROM saltern.vault_seals")
            #expect(try await carol.client.get(path).status == 404)
            func put(_ list: SealList) async throws -> TestResponse {
                try await carol.client.put(path, .object(JSONObject(VaultScene.member(of: list))))
            }
            #expect(try await put(other).code == "invalid_list")
            #expect(try await put(list).status == 204)
            #expect(try await put(list).status == 204)
            #expect(try await carol.client.get(path).status == 200)
        }
    }

    @Test func `the lists of seals have a budget, and the latest one always stays`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET vault_items = 2")
            var vault = try await VaultScene(app)
            var numbers: [UInt64] = []
            for _ in 0..<3 {
                let bob = try await vault.join(as: .writer)
                let (generation, keys) = try vault.newKeys(without: [bob.member])
                #expect(try await vault.append(.remove(generation, [bob.member]), keys).status == 200)
                let marks = try (0..<2).map { _ in (VaultItemID.random(), try Self.mark()) }
                let list = SealList(Dictionary(uniqueKeysWithValues: marks))
                let seal = EntryPayload.seal(Seal(of: bob.member, list))
                #expect(try await vault.append(seal, VaultScene.member(of: list)).status == 200)
                numbers.append(vault.log.head.number.value)
            }
            let stored = try await vault.founder.client.get("\(vault.path)/log").array("seals")
            #expect(stored == numbers.suffix(2).map { .integer(Int64($0)) })
        }
    }

    @Test func `a writer has a present head`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            func put(_ head: String?) async throws -> TestResponse {
                try await bob.client.put(
                    "\(vault.path)/items/\(Fixtures.uuid())", vault.item(),
                    ["If-None-Match": "*"].merging(head.map { ["Vault-Head": $0] } ?? [:]) { $1 })
            }
            for head in [nil, "", "x", "0", "-1"] {
                let reply = try await put(head)
                #expect(reply.status == 428)
                #expect(reply.code == "vault_head_required")
            }
            // Bob's own join is entry 3.
            for head in ["2", "4", "4096", "1099511627776"] {
                let reply = try await put(head)
                #expect(reply.status == 409)
                #expect(reply.code == "membership_moved")
                #expect(reply.integer("head") == 3)
            }
            #expect(try await put("3").status == 201)
            // An entry about others does not concern a writer.
            _ = try await vault.invite(as: .reader)
            #expect(try await put("3").status == 201)
            let (generation, keys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(generation), keys).status == 200)
            #expect(try await put("4").code == "membership_moved")
            #expect(try await put("5").status == 201)
            let batch: JSONValue = ["operations": [BatchTests.put(Fixtures.uuid(), 0, vault.item())]]
            let path = "\(vault.path)/items/batch"
            #expect(try await bob.client.post(path, batch).code == "vault_head_required")
            #expect(try await bob.client.post(path, batch, ["Vault-Head": "4"]).code == "membership_moved")
            #expect(try await bob.client.post(path, batch, ["Vault-Head": "5"]).status == 200)
        }
    }

    @Test func `a removal waits until its author has the latest items`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let revision = try #require(try await bob.client.get(vault.path).integer("revision"))
            let written = try await bob.client.put(
                "\(vault.path)/items/\(Fixtures.uuid())", vault.item(), vault.fields(["If-None-Match": "*"]))
            #expect(written.status == 201)
            let (generation, keys) = try vault.newKeys(without: [bob.member])
            let removal = EntryPayload.remove(generation, [bob.member])
            func members(_ revision: Int) -> [(name: String, value: JSONValue)] {
                keys + [(name: "ifRevision", value: .integer(Int64(revision)))]
            }
            let moved = try await vault.append(removal, members(revision))
            #expect(moved.status == 409)
            #expect(moved.code == "vault_moved")
            #expect(moved.integer("revision") == written.integer("revision"))
            #expect(try await vault.append(removal, members(revision + 1)).status == 200)
        }
    }

    @Test func `an author appends 60 entries in an hour, and removals always`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            // Two of the founder's entries stand in the log.
            for index in 0..<58 {
                let reply = try await vault.append(.role(bob.member, index % 2 == 0 ? .reader : .writer))
                #expect(reply.status == 200, "\(reply)")
            }
            let refused = try await vault.append(.role(bob.member, .reader))
            #expect(refused.status == 429)
            #expect(refused.code == "too_many_entries")
            #expect(refused.fields["Retry-After"] == "3600")
            #expect(try await vault.append(.leave, by: bob).status == 200)
            let (generation, keys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(generation), keys).code == "too_many_entries")
        }
    }

    @Test func `a member rotates once in a minute`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let (second, secondKeys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(second), secondKeys).status == 200)
            let before = vault
            let (early, earlyKeys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(early), earlyKeys).code == "too_many_entries")
            vault = before
            app.clock.advance(by: .seconds(60))
            let (third, thirdKeys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(third), thirdKeys).status == 200)
        }
    }
}
