import Cryptography
import HTTPCore
import SalternTesting
import Testing
import VaultLog

/// Boxes, seen heads, lists of seals, and the heads of writers.
@Suite struct VaultKeyTests {
    private static let box = Base64.encodeToString([UInt8](repeating: 1, count: GenerationBox.byteCount))
    private static let previousKey = Base64.encodeToString(
        [UInt8](repeating: 2, count: GenerationKey.sealedPreviousByteCount))

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

            let box: JSONValue = ["member": .string(bob.member.text), "box": .string(Self.box)]
            let key: JSONValue = ["generation": 2, "key": .string(Self.previousKey)]
            let body: JSONValue = ["generation": 2, "boxes": [box], "previousKeys": [key]]
            #expect(try await bob.client.put(path, body).status == 403)
            #expect(try await vault.founder.client.put(path, body).status == 204)
            let log = try await bob.client.get("\(vault.path)/log")
            #expect(log.array("boxes") == [["generation": 2, "box": .string(Self.box)]])
            #expect(log.array("previousKeys") == [["generation": 2, "key": .string(Self.previousKey)]])

            let early: JSONValue = ["generation": 1, "boxes": [box]]
            #expect(try await vault.founder.client.put(path, early).code == "stale_generation")
            let stranger: JSONValue = ["member": .string(MemberID.random().text), "box": .string(Self.box)]
            let wrong: JSONValue = ["generation": 2, "boxes": [stranger]]
            #expect(try await vault.founder.client.put(path, wrong).code == "invalid_boxes")
            let twice: JSONValue = ["generation": 2, "boxes": [box, box]]
            #expect(try await vault.founder.client.put(path, twice).code == "invalid_boxes")
            let first: JSONValue = [
                "generation": 2, "previousKeys": [["generation": 1, "key": .string(Self.previousKey)]],
            ]
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
            try await Self.fill(vault, items: 1)
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

    /// Lets a writer join, and removes it.
    private static func cut(_ vault: inout VaultScene, by manager: VaultScene.Sharer? = nil) async throws -> MemberID {
        let bob = try await vault.join(as: .writer)
        let (generation, keys) = try vault.newKeys(without: [bob.member])
        #expect(try await vault.append(.remove(generation, [bob.member]), by: manager, keys).status == 200)
        return bob.member
    }

    private static func list(_ count: Int) throws -> SealList {
        SealList(Dictionary(uniqueKeysWithValues: try (0..<count).map { _ in (VaultItemID.random(), try Self.mark()) }))
    }

    private static func fill(_ vault: VaultScene, items: Int) async throws {
        for _ in 0..<items {
            let reply = try await vault.founder.client.put(
                "\(vault.path)/items/\(Fixtures.uuid())", vault.item(), vault.fields(["If-None-Match": "*"]))
            #expect(reply.status == 201, "\(reply)")
        }
    }

    @Test func `the lists of a manager's seals push out its own alone, and its latest one always stays`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET vault_items = 2")
            var vault = try await VaultScene(app)
            let mallory = try await vault.join(as: .manager)
            try await Self.fill(vault, items: 2)
            // Nobody lists more edits than the vault has items.
            let first = try await Self.cut(&vault)
            let long = try Self.list(3)
            let refused = try await vault.append(Self.seal(first, vault, long), VaultScene.member(of: long))
            #expect(refused.status == 403)
            #expect(refused.string("limit") == "sealed")
            let honest = try Self.list(2)
            #expect(
                try await vault.append(Self.seal(first, vault, honest), VaultScene.member(of: honest)).status == 200)
            var numbers = [vault.log.head.number.value]
            for _ in 0..<5 {
                let writer = try await Self.cut(&vault)
                let list = try Self.list(2)
                let sealed = try await vault.append(
                    Self.seal(writer, vault, list), by: mallory, VaultScene.member(of: list))
                #expect(sealed.status == 200, "\(sealed)")
                numbers.append(vault.log.head.number.value)
            }
            // Four lists of two edits fit the budget of each manager.
            numbers.remove(at: 1)
            let stored = try await vault.founder.client.get("\(vault.path)/log").array("seals")
            #expect(stored == numbers.map { .integer(Int64($0)) })
        }
    }

    @Test func `the lists of former managers have one budget together`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET vault_items = 2")
            var vault = try await VaultScene(app)
            try await Self.fill(vault, items: 2)
            let writer = try await Self.cut(&vault)
            var numbers: [UInt64] = []
            func seal(_ manager: VaultScene.Sharer?) async throws {
                let list = try Self.list(2)
                let reply = try await vault.append(
                    Self.seal(writer, vault, list), by: manager, VaultScene.member(of: list))
                #expect(reply.status == 200, "\(reply)")
                numbers.append(vault.log.head.number.value)
            }
            for _ in 0..<5 {
                let manager = try await vault.join(as: .manager)
                try await seal(manager)
                #expect(try await vault.append(.leave, by: manager).status == 200)
            }
            try await seal(nil)
            // Four lists of two edits fit the budget. The earliest stay.
            let late = numbers.remove(at: 4)
            let stored = try await vault.founder.client.get("\(vault.path)/log").array("seals")
            #expect(stored == numbers.map { .integer(Int64($0)) })
            #expect(try await vault.founder.client.get("\(vault.path)/seals/\(late)").status == 404)
        }
    }

    /// The entry that lists the edits of a writer that the latest entry has cut off.
    private static func seal(_ writer: MemberID, _ vault: VaultScene, _ list: SealList) -> EntryPayload {
        .seal(Seal(of: writer, list))
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
            #expect(try await put(nil).status == 428)
            #expect(try await put(nil).code == "vault_head_required")
            // Two fields are joined by a comma.
            for head in ["", "x", "0", "-1", "+3", "03", "3, 3", "99999999999999999999"] {
                let reply = try await put(head)
                #expect(reply.status == 400, "\(head)")
                #expect(reply.code == "malformed_precondition")
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

    @Test func `a lower role waits until its author has the latest items`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let revision = try #require(try await bob.client.get(vault.path).integer("revision"))
            let written = try await bob.client.put(
                "\(vault.path)/items/\(Fixtures.uuid())", vault.item(), vault.fields(["If-None-Match": "*"]))
            #expect(written.status == 201)
            let lower = EntryPayload.role(bob.member, .reader)
            let moved = try await vault.append(lower, [(name: "ifRevision", value: .integer(Int64(revision)))])
            #expect(moved.code == "vault_moved")
            let later = [(name: "ifRevision", value: JSONValue.integer(Int64(revision + 1)))]
            #expect(try await vault.append(lower, later).status == 200)
        }
    }

    @Test func `an author appends 60 entries in an hour, beside removals and seals`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let carol = try await vault.join(as: .writer)
            try await Self.fill(vault, items: 1)
            // Three of the founder's entries stand in the log.
            for index in 0..<57 {
                let reply = try await vault.append(.role(bob.member, index % 2 == 0 ? .reader : .writer))
                #expect(reply.status == 200, "\(reply)")
            }
            let refused = try await vault.append(.role(bob.member, .writer))
            #expect(refused.status == 429)
            #expect(refused.code == "too_many_entries")
            #expect(refused.fields["Retry-After"] == "3600")
            let (generation, keys) = try vault.newKeys(without: [carol.member])
            #expect(try await vault.append(.remove(generation, [carol.member]), keys).status == 200)
            let list = try Self.list(1)
            let seal = Self.seal(carol.member, vault, list)
            #expect(try await vault.append(seal, VaultScene.member(of: list)).status == 200)
            #expect(try await vault.append(.leave, by: bob).status == 200)
        }
    }

    @Test func `a manager repeats 60 seals in an hour`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let (first, second) = (try await Self.cut(&vault), try await Self.cut(&vault))
            let list = try Self.list(0)
            func seal(_ writer: MemberID) async throws -> TestResponse {
                try await vault.append(Self.seal(writer, vault, list), VaultScene.member(of: list))
            }
            for _ in 0..<60 { #expect(try await seal(first).status == 200) }
            #expect(try await seal(first).code == "too_many_entries")
            // The first one after a cut counts, and waits for nothing.
            #expect(try await seal(second).status == 200)
            #expect(try await seal(second).code == "too_many_entries")
            // Other entries have a limit of their own.
            _ = try await vault.invite(as: .reader)
            app.clock.advance(by: .seconds(3_601))
            #expect(try await seal(second).status == 200)
        }
    }

    @Test func `a member rotates once in a minute of the server's clock`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let (second, secondKeys) = try vault.newKeys()
            let early = try vault.entry(.rotate(second), after: -299)
            let path = "\(vault.path)/log"
            #expect(try await vault.founder.client.post(path, VaultScene.body(early, secondKeys)).status == 200)
            try vault.note(early)
            let before = vault
            let (again, againKeys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(again), againKeys).code == "too_many_entries")
            vault = before
            app.clock.advance(by: .seconds(60))
            let (third, thirdKeys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(third), thirdKeys).status == 200)
        }
    }

    @Test func `new keys need the password key, and end the box under the former ones`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let (generation, keys) = try vault.newKeys()
            #expect(try await vault.append(.rotate(generation), keys).status == 200)
            #expect(try await bob.client.get(vault.path).bool("boxMissing") == false)
            func rekey() throws -> Entry {
                try EntryWriter.rekey(
                    to: try .generate(), by: try MemberSigner(bob.member, of: vault.log.vault, bob.keys),
                    after: vault.log, at: try VaultScene.time(app))
            }
            let entry = try rekey()
            let path = "\(vault.path)/log"
            #expect(try await bob.client.post(path, VaultScene.body(entry)).code == "missing_member")
            let wrong = VaultScene.body(
                entry, [(name: "currentPasswordKey", value: .string(Fixtures.passwordKey("wrong")))])
            #expect(try await bob.client.post(path, wrong).code == "wrong_credentials")
            #expect(try await bob.client.get(vault.path).bool("boxMissing") == false)
            let right = VaultScene.body(
                entry, [(name: "currentPasswordKey", value: .string(bob.account.passwordKey))])
            let reply = try await bob.client.post(path, right)
            #expect(reply.status == 200, "\(reply)")
            #expect(try await bob.client.get(vault.path).bool("boxMissing") == true)
            try vault.note(entry)
        }
    }
}
