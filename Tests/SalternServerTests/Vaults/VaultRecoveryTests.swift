import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing
import VaultLog

/// Vaults after a restore of the database.
@Suite struct VaultRecoveryTests {
    private static func entries(_ entries: [Entry]) -> JSONValue {
        ["entries": .array(entries.map { .string(Base64.encodeToString($0.bytes)) })]
    }

    private static func body(_ head: Head) -> JSONValue {
        ["head": .object(JSONObject(VaultScene.members(of: head)))]
    }

    @Test func `members put entries back, and the owner ends the recovery`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let carol = try await vault.join(as: .writer)
            try await VaultBackup.make(app)
            let kept = vault
            let (generation, keys) = try vault.newKeys(without: [carol.member])
            #expect(try await vault.append(.remove(generation, [carol.member]), keys).status == 200)
            #expect(try await vault.append(.role(bob.member, .manager)).status == 200)
            let missing = Array(vault.noted.suffix(2))
            try await VaultBackup.restore(app)
            let path = "\(vault.path)/log"
            #expect(try await bob.client.get(vault.path).string("recoveringUntil") != nil)

            // Nobody appends, not even a member that the lost entries have removed.
            let forged = try kept.entry(.leave, by: carol)
            let refused = try await carol.client.post(path, VaultScene.body(forged))
            #expect(refused.status == 409)
            #expect(refused.code == "recovering")
            // Items are written as ever.
            let item = try await bob.client.put(
                "\(vault.path)/items/\(Fixtures.uuid())", kept.item(), kept.fields(["If-None-Match": "*"]))
            #expect(item.status == 201, "\(item)")

            let gap = try await bob.client.put(path, Self.entries([missing[1]]))
            #expect(gap.code == "membership_moved")
            let put = try await bob.client.put(path, Self.entries(missing))
            #expect(put.status == 200, "\(put)")
            #expect(put.integer("number") == Int(vault.log.head.number.value))
            #expect(try await bob.client.put(path, Self.entries(missing)).status == 200)
            // Entries that were put back take rights, and give none yet.
            #expect(try await carol.client.get(vault.path).status == 404)
            #expect(try await bob.client.get(vault.path).string("role") == "writer")
            let stale = try await bob.client.put(
                "\(vault.path)/items/\(Fixtures.uuid())", kept.item(), vault.fields(["If-None-Match": "*"]))
            #expect(stale.code == "stale_generation")

            let recovered = "\(vault.path)/recovered"
            #expect(try await bob.client.post(recovered, Self.body(vault.log.head)).status == 403)
            let early = try await vault.founder.client.post(recovered, Self.body(kept.log.head))
            #expect(early.code == "membership_moved")
            #expect(early.array("entries")?.count == 2)
            #expect(try await vault.founder.client.post(recovered, Self.body(vault.log.head)).status == 204)
            #expect(try await bob.client.get(vault.path)["recoveringUntil"] == nil)
            #expect(try await bob.client.get(vault.path).string("role") == "manager")
            #expect(try await bob.client.put(path, Self.entries(missing)).code == "not_recovering")
            #expect(try await vault.append(.role(bob.member, .writer)).status == 200)
        }
    }

    @Test func `a manager that lost entries have removed cannot continue the log`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let mallory = try await vault.join(as: .manager)
            let bob = try await vault.join(as: .writer)
            let eve = try await vault.join(as: .reader)
            try await VaultBackup.make(app)
            let kept = vault
            let (generation, keys) = try vault.newKeys(without: [mallory.member])
            #expect(try await vault.append(.remove(generation, [mallory.member]), keys).status == 200)
            let missing = Array(vault.noted.suffix(1))
            try await VaultBackup.restore(app)
            let path = "\(vault.path)/log"

            // Mallory is a manager again, and makes entries with earlier times.
            var fork = kept
            let raising = try fork.entry(.role(eve.member, .manager), by: mallory, after: -60)
            try fork.note(raising)
            let (other, _) = try fork.newKeys()
            let rotation = try fork.entry(.rotate(other), by: mallory, after: -60)
            try fork.note(rotation)
            let own = try await mallory.client.put(path, Self.entries([raising, rotation]))
            #expect(own.status == 200)
            #expect(own.integer("number") == Int(kept.log.head.number.value))
            #expect(own["revision"] == nil)
            // Another account of Mallory's sends them: they are provisional, and give no role.
            let others = try await eve.client.put(path, Self.entries([raising, rotation]))
            #expect(others.integer("number") == Int(fork.log.head.number.value))
            #expect(try await eve.client.get(vault.path).string("role") == "reader")
            #expect(try await vault.founder.client.get(vault.path).integer("head.number") != nil)
            // Members cannot replace them, and the owner does.
            #expect(try await bob.client.put(path, Self.entries(missing)).code == "membership_moved")
            let put = try await vault.founder.client.put(path, Self.entries(missing))
            #expect(put.status == 200, "\(put)")
            #expect(put.integer("number") == Int(vault.log.head.number.value))
            #expect(put.string("hash") == Base64.encodeToString(vault.log.head.hash.bytes))
            #expect(try await mallory.client.get(vault.path).status == 404)
            #expect(try await eve.client.put(path, Self.entries([raising])).code == "membership_moved")
            let log = try await bob.client.get("\(vault.path)/log")
            #expect(log.array("entries")?.count == Int(vault.log.head.number.value))

            let recovered = try await vault.founder.client.post("\(vault.path)/recovered", Self.body(vault.log.head))
            #expect(recovered.status == 204)
            #expect(try await eve.client.get(vault.path).string("role") == "reader")
            let written = try await bob.client.put(
                "\(vault.path)/items/\(Fixtures.uuid())", vault.item(), vault.fields(["If-None-Match": "*"]))
            #expect(written.status == 201, "\(written)")
        }
    }

    @Test func `a log of 300 entries is put back at once, and one of 100 members is removed`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            try await app.administer("UPDATE saltern.plans SET max_vault_members = 128")
            try await VaultBackup.moveBase(app)
            var invitations: [InvitationSecrets] = []
            for _ in 0..<4 { invitations.append(try vault.noteInvitation(as: .reader, uses: 32)) }
            var members: [VaultScene.Sharer] = []
            for index in 0..<99 {
                let member = try VaultScene.Sharer(vault.founder.account)
                try vault.note(try vault.joining(invitations[index / 32], member).entry)
                members.append(member)
            }
            for round in 0..<2 {
                for member in members {
                    try vault.note(try vault.entry(.role(member.member, round == 0 ? .writer : .reader)))
                }
            }
            let path = "\(vault.path)/log"
            #expect(vault.noted.count > 300)
            let put = try await vault.founder.client.put(path, Self.entries(vault.noted))
            #expect(put.status == 200, "\(put)")
            #expect(put.integer("number") == Int(vault.log.head.number.value))
            let recovered = try await vault.founder.client.post("\(vault.path)/recovered", Self.body(vault.log.head))
            #expect(recovered.status == 204)
            #expect(try await vault.founder.client.get(vault.path).array("members")?.count == 100)
            let (generation, keys) = try vault.newKeys(without: [members[0].member])
            let removed = try await vault.append(.remove(generation, [members[0].member]), keys)
            #expect(removed.status == 200, "\(removed)")
        }
    }

    @Test func `a recovery ends after seven days`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .reader)
            try await VaultBackup.make(app)
            #expect(try await vault.append(.role(bob.member, .writer)).status == 200)
            try await VaultBackup.restore(app)
            let path = "\(vault.path)/log"
            #expect(try await bob.client.put(path, Self.entries(vault.noted.suffix(1))).status == 200)
            #expect(try await vault.append(.role(bob.member, .reader)).code == "recovering")
            #expect(try await bob.client.get(vault.path).string("role") == "reader")
            // A vault that was founded since then does not recover.
            var other = try await VaultScene(app)
            _ = try await other.invite(as: .reader)
            app.clock.advance(by: .seconds(7 * 86_400))
            let founder = try await app.logIn(vault.founder.account)
            let entry = try vault.entry(.offer(nil))
            // The first request about the log ends it: what was put back counts.
            #expect(try await founder.post(path, VaultScene.body(entry)).code == "entry_refused")
            let lowering = try vault.entry(.role(bob.member, .reader))
            #expect(try await founder.post(path, VaultScene.body(lowering)).status == 200)
            #expect(try await founder.get(vault.path)["recoveringUntil"] == nil)
        }
    }

    @Test func `a member whose join was put back claims it`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let carol = try await vault.join(as: .reader)
            _ = try await vault.invite(as: .writer)
            try await VaultBackup.make(app)
            let before = vault
            let bob = try await vault.join(as: .writer)
            try await VaultBackup.restore(app)
            #expect(try await bob.client.get(vault.path).status == 404)
            let missing = vault.noted.filter { $0.number > before.log.head.number }
            let stranger = try VaultScene.Sharer(try await app.register())
            let path = "\(vault.path)/claim"
            let log = vault
            func claim(_ sharer: VaultScene.Sharer, signedBy signer: VaultScene.Sharer) throws -> JSONValue {
                try Self.claim(of: bob, for: sharer, signedBy: signer, log)
            }
            // No claim adds entries: another member puts the join back.
            #expect(try await bob.client.post(path, claim(bob, signedBy: bob)).status == 404)
            #expect(try await carol.client.put("\(vault.path)/log", Self.entries(missing)).status == 200)
            // A stranger signs with its own key, or sends Bob's statement. No reply has entries.
            for refused in [
                try await stranger.client.post(path, claim(stranger, signedBy: stranger)),
                try await stranger.client.post(path, claim(bob, signedBy: bob)),
                try await stranger.client.post(
                    path, Self.claim(of: stranger, for: stranger, signedBy: stranger, vault)),
            ] {
                #expect([404, 422].contains(refused.status))
                #expect(refused["entries"] == nil)
            }
            #expect(try await stranger.client.get(vault.path).status == 404)
            let claimed = try await bob.client.post(path, claim(bob, signedBy: bob))
            #expect(claimed.status == 200, "\(claimed)")
            #expect(claimed.string("memberId") == bob.member.text)
            // The join gives nothing before the end of the recovery, and counts for the limit of the plan.
            #expect(try await bob.client.get(vault.path).status == 404)
            try await app.administer("UPDATE saltern.plans SET max_memberships = 1")
            let second = try EntryWriter.found(
                by: .random(), named: try #require(MemberName("Bob")), try .generate(), .random(),
                at: try VaultScene.time(app))
            #expect(try await bob.client.post("/v1/vaults", VaultScene.body(second)).string("limit") == "memberships")
            let recovered = try await vault.founder.client.post("\(vault.path)/recovered", Self.body(vault.log.head))
            #expect(recovered.status == 204)
            #expect(try await bob.client.get(vault.path).string("role") == "writer")
            #expect(try await bob.client.get("/v1/vaults").array("vaults")?.count == 1)
            #expect(try await bob.client.post(path, claim(bob, signedBy: bob)).status == 200)
            // One account has the member.
            let other = try VaultScene.Sharer(try await app.register())
            #expect(try await other.client.post(path, claim(other, signedBy: bob)).code == "already_member")
            let unknown = "/v1/vaults/\(Fixtures.uuid())/claim"
            #expect(try await bob.client.post(unknown, claim(bob, signedBy: bob)).status == 404)
        }
    }

    @Test func `an account claims one member`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let secrets = try await vault.invite(as: .writer, uses: 2)
            try await VaultBackup.make(app)
            let bob = try VaultScene.Sharer(try await app.register())
            let twin = try VaultScene.Sharer(bob.account)
            for sharer in [bob, twin] { try vault.note(try vault.joining(secrets, sharer).entry) }
            try await VaultBackup.restore(app)
            let missing = Array(vault.noted.suffix(2))
            #expect(try await vault.founder.client.put("\(vault.path)/log", Self.entries(missing)).status == 200)
            let path = "\(vault.path)/claim"
            func claim(_ sharer: VaultScene.Sharer) async throws -> TestResponse {
                try await bob.client.post(path, Self.claim(of: sharer, for: bob, signedBy: sharer, vault))
            }
            #expect(try await claim(bob).status == 200)
            // Neither has a role yet, and both would get one.
            #expect(try await claim(twin).code == "already_member")
            #expect(try await claim(bob).status == 200)
        }
    }

    @Test func `a join by an invitation of the backup counts after the recovery`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let dave = try await vault.join(as: .reader)
            let secrets = try await vault.invite(as: .writer)
            try await VaultBackup.make(app)
            let bob = try VaultScene.Sharer(try await app.register())
            let (join, body) = try vault.joining(secrets, bob)
            let acceptance = "/v1/invitations/\(secrets.id.text)/acceptance"
            #expect(try await bob.client.post(acceptance, body).status == 201)
            try vault.note(join)
            try await VaultBackup.restore(app)
            // The link is closed: it may have been used up or revoked since the backup.
            let carol = try VaultScene.Sharer(try await app.register())
            #expect(try await carol.client.post(acceptance, try vault.joining(secrets, carol).body).status == 404)
            #expect(try await dave.client.put("\(vault.path)/log", Self.entries([join])).status == 200)
            let claim = try Self.claim(of: bob, for: bob, signedBy: bob, vault)
            #expect(try await bob.client.post("\(vault.path)/claim", claim).status == 200)
            #expect(try await bob.client.get(vault.path).status == 404)
            #expect(try await bob.client.get("\(vault.path)/changes").status == 404)
            let recovered = try await vault.founder.client.post("\(vault.path)/recovered", Self.body(vault.log.head))
            #expect(recovered.status == 204)
            #expect(try await bob.client.get(vault.path).string("role") == "writer")
        }
    }

    @Test func `a member puts no join back that is older than the backup`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .reader)
            let secrets = try await vault.invite(as: .manager)
            app.clock.advance(by: .seconds(4_000))
            _ = try await vault.invite(as: .reader)
            try await VaultBackup.moveBase(app)
            // By such a time an invitation that has expired since would be open.
            let mallory = try VaultScene.Sharer(bob.account)
            let late = try vault.joining(secrets, mallory, after: -3_900).entry
            let path = "\(vault.path)/log"
            #expect(try await bob.client.put(path, Self.entries([late])).code == "clock_skew")
            #expect(try await vault.founder.client.put(path, Self.entries([late])).status == 200)
        }
    }

    @Test func `nobody claims the member of a deleted account`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let key = JSONValue.string(bob.account.passwordKey)
            let deleted = try await bob.client.send(
                .delete, "/v1/account", body: TestClient.document(["currentPasswordKey": key]))
            #expect(deleted.status == 204)
            let thief = try VaultScene.Sharer(try await app.register())
            let claim = try Self.claim(of: bob, for: thief, signedBy: bob, vault)
            #expect(try await thief.client.post("\(vault.path)/claim", claim).code == "already_member")
            #expect(try await thief.client.get(vault.path).status == 404)
        }
    }

    @Test func `a former owner deletes no vault that recovers`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .manager)
            #expect(try await vault.append(.offer(bob.member)).status == 200)
            try await VaultBackup.make(app)
            let accept = try vault.entry(.accept(vault.log.head.number), by: bob)
            #expect(try await bob.client.post("\(vault.path)/owner", VaultScene.body(accept)).status == 200)
            try vault.note(accept)
            try await VaultBackup.restore(app)
            let (founder, path) = (vault.founder.client, vault.path)
            let key = JSONValue.string(vault.founder.account.passwordKey)
            func deleteAccount() async throws -> TestResponse {
                try await founder.send(
                    .delete, "/v1/account", body: TestClient.document(["currentPasswordKey": key, "vaults": "delete"]))
            }
            #expect(try await founder.delete(path).code == "recovering")
            #expect(try await deleteAccount().code == "recovering")
            #expect(try await founder.put("\(path)/log", Self.entries([accept])).status == 200)
            #expect(try await founder.delete(path).code == "recovering")
            #expect(try await bob.client.post("\(path)/owner", VaultScene.body(accept)).code == "recovering")
            #expect(try await founder.post("\(path)/recovered", Self.body(vault.log.head)).status == 204)
            #expect(try await founder.delete(path).status == 403)
            #expect(try await bob.client.post("\(path)/owner", VaultScene.body(accept)).status == 200)
            #expect(try await bob.client.get(path).bool("owner") == true)
            #expect(try await deleteAccount().status == 204)
            #expect(try await bob.client.get(path).status == 200)
        }
    }

    private static func claim(
        of member: VaultScene.Sharer, for sharer: VaultScene.Sharer, signedBy signer: VaultScene.Sharer,
        _ vault: VaultScene
    ) throws -> JSONValue {
        let account = try #require(MemberAccountID(text: sharer.account.id))
        let statement = try MemberStatement(
            .claim(account), by: try MemberSigner(member.member, of: vault.log.vault, signer.keys), vault.log.head)
        return .object(
            JSONObject([
                (name: "member", value: .string(member.member.text)),
                (name: "head", value: .object(JSONObject(VaultScene.members(of: vault.log.head)))),
                (name: "signature", value: .string(Base64.encodeToString(statement.signature.bytes))),
            ]))
    }
}
