import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing
import VaultLog

/// Vaults after a restore of the database.
@Suite struct VaultRecoveryTests {
    /// Removes all entries above a number, and what they have changed.
    private static func restore(_ app: TestApplication, to number: Int) async throws {
        try await app.administer(
            """
            DELETE FROM saltern.vault_entries WHERE number > \(number);
            DELETE FROM saltern.vault_boxes;
            DELETE FROM saltern.vault_generations;
            DELETE FROM saltern.vault_members WHERE since > \(number) AND role > 0;
            UPDATE saltern.vaults a SET head_number = e.number, head_hash = e.hash
                FROM saltern.vault_entries e WHERE e.vault_id = a.vault_id AND e.number = \(number);
            DELETE FROM saltern.memberships m WHERE NOT EXISTS (
                SELECT FROM saltern.vault_members v WHERE v.vault_id = m.vault_id AND v.member_id = m.member_id);
            UPDATE saltern.installation SET revision_base = revision_base + 1000000,
                base_moved_at = to_timestamp(\(app.clock.now.unixMicroseconds / 1_000_000));
            """)
    }

    @Test func `members put entries back, and the owner ends the recovery`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let carol = try await vault.join(as: .writer)
            let kept = vault
            var missing: [Entry] = []
            let (generation, keys) = try vault.newKeys(without: [carol.member])
            for payload in [EntryPayload.remove(generation, [carol.member]), .role(bob.member, .manager)] {
                let entry = try vault.entry(payload)
                missing.append(entry)
                try vault.note(entry)
            }
            _ = keys
            // The database is that of the backup: it never had these entries.
            try await Self.restore(app, to: Int(kept.log.head.number.value))
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

            let gap = try await bob.client.put(path, Self.body([missing[1]]))
            #expect(gap.code == "membership_moved")
            let put = try await bob.client.put(path, Self.body(missing))
            #expect(put.status == 200, "\(put)")
            #expect(put.integer("number") == Int(vault.log.head.number.value))
            #expect(try await bob.client.put(path, Self.body(missing)).status == 200)
            #expect(try await carol.client.get(vault.path).status == 404)
            #expect(try await bob.client.get(vault.path).string("role") == "manager")
            let stale = try await bob.client.put(
                "\(vault.path)/items/\(Fixtures.uuid())", kept.item(), vault.fields(["If-None-Match": "*"]))
            #expect(stale.code == "stale_generation")

            let recovered = "\(vault.path)/recovered"
            func body(_ head: Head) -> JSONValue { ["head": .object(JSONObject(VaultScene.members(of: head)))] }
            #expect(try await bob.client.post(recovered, body(vault.log.head)).status == 403)
            let early = try await vault.founder.client.post(recovered, body(kept.log.head))
            #expect(early.code == "membership_moved")
            #expect(early.array("entries")?.count == 2)
            #expect(try await vault.founder.client.post(recovered, body(vault.log.head)).status == 204)
            #expect(try await bob.client.get(vault.path)["recoveringUntil"] == nil)
            #expect(try await bob.client.put(path, Self.body(missing)).code == "not_recovering")
            #expect(try await vault.append(.role(bob.member, .writer)).status == 200)
        }
    }

    @Test func `a recovery ends after seven days`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            try await Self.restore(app, to: Int(vault.log.head.number.value))
            #expect(try await vault.append(.role(bob.member, .reader)).code == "recovering")
            // A vault that was founded since then does not recover.
            var other = try await VaultScene(app)
            _ = try await other.invite(as: .reader)
            app.clock.advance(by: .seconds(7 * 86_400))
            let founder = try await app.logIn(vault.founder.account)
            let entry = try vault.entry(.role(bob.member, .reader))
            #expect(try await founder.post("\(vault.path)/log", VaultScene.body(entry)).status == 200)
        }
    }

    @Test func `a member whose join was put back claims it`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            _ = try await vault.invite(as: .writer)
            let before = vault
            let bob = try await vault.join(as: .writer)
            try await Self.restore(app, to: Int(before.log.head.number.value))
            #expect(try await bob.client.get(vault.path).status == 404)
            let missing = vault.noted.filter { $0.number > before.log.head.number }
            let stranger = try VaultScene.Sharer(try await app.register())
            let path = "\(vault.path)/claim"
            func claim(_ sharer: VaultScene.Sharer, signedBy signer: VaultScene.Sharer) throws -> JSONValue {
                let account = try #require(MemberAccountID(text: sharer.account.id))
                let statement = try MemberStatement(
                    .claim(account), by: try MemberSigner(bob.member, of: vault.log.vault, signer.keys),
                    vault.log.head)
                return .object(
                    JSONObject([
                        (name: "member", value: .string(bob.member.text)),
                        (name: "head", value: .object(JSONObject(VaultScene.members(of: vault.log.head)))),
                        (name: "signature", value: .string(Base64.encodeToString(statement.signature.bytes))),
                        (
                            name: "entries",
                            value: .array(missing.map { .string(Base64.encodeToString($0.bytes)) })
                        ),
                    ]))
            }
            // A stranger signs with its own key, or sends Bob's statement.
            #expect(try await stranger.client.post(path, claim(stranger, signedBy: stranger)).code == "claim_refused")
            #expect(try await stranger.client.post(path, claim(bob, signedBy: bob)).code == "claim_refused")
            #expect(try await stranger.client.get(vault.path).status == 404)
            let claimed = try await bob.client.post(path, claim(bob, signedBy: bob))
            #expect(claimed.status == 200, "\(claimed)")
            #expect(claimed.string("memberId") == bob.member.text)
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

    private static func body(_ entries: [Entry]) -> JSONValue {
        ["entries": .array(entries.map { .string(Base64.encodeToString($0.bytes)) })]
    }
}
