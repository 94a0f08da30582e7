import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// An admin puts back the keyring of an account whose app does not.
@Suite struct KeyringRestorationTests {
    private static let path = "/v1/account/keyring"

    private static func restore(
        _ app: TestApplication, _ account: TestAccount, revision: Int64? = nil
    ) async throws -> AccountAdministration.RestoredKeyring {
        let signature = InviteTests.signature(app)
        return try await AccountAdministrationTests.administer(app) {
            try await $0.restoreKeyring(of: .userid(account.userid), revision: revision, by: signature)
        }
    }

    @Test func `a restored keyring is the account's again, with what the code opened, and can be undone`() async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let (good, bad, opened) = (Fixtures.sealed(), Fixtures.sealed(), Fixtures.sealed())
            _ = try await ada.client.put(Self.path, ["keyring": .string(good)], ["If-None-Match": "*"])
            #expect(try await ada.setRecovery(RecoveryTests.code, keyring: opened).status == 200)
            await #expect(throws: KeyringRestorationRefusal.none) { try await Self.restore(app, ada) }

            let body: JSONValue = ["keyring": .string(bad), "recoveryKeyring": .string(Fixtures.sealed())]
            #expect(try await ada.client.put(Self.path, body, ["If-Match": "*"]).status == 200)
            app.clock.advance(by: .seconds(1))
            let restored = try await Self.restore(app, ada)
            #expect(restored.revision == 2 && restored.newRevision == 4)
            let present = try await ada.client.get(Self.path)
            #expect(present.string("keyring") == good && present.integer("revision") == 4)
            #expect(try await app.recover(ada, RecoveryTests.code).string("keyring") == opened)
            #expect(try await app.events(of: ada).contains("keyring_restored"))
            let entry = try #require(try await AccountAdministrationTests.audit(app).first)
            #expect(entry.action == "keyring_restored" && entry.targetAccount?.description == ada.id)
            #expect(entry.detail == "revision 2 as 4")

            // The one that it has replaced is kept in its place.
            app.clock.advance(by: .seconds(1))
            #expect(try await Self.restore(app, ada, revision: 3).newRevision == 5)
            #expect(try await ada.client.get(Self.path).string("keyring") == bad)
        }
    }

    @Test func `of several one has to be named`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let good = Fixtures.sealed()
            _ = try await ada.client.put(Self.path, ["keyring": .string(good)], ["If-None-Match": "*"])
            for _ in 0..<2 {
                app.clock.advance(by: .seconds(1))
                _ = try await ada.client.put(Self.path, ["keyring": .string(Fixtures.sealed())], ["If-Match": "*"])
            }
            do {
                _ = try await Self.restore(app, ada)
                Issue.record("one was chosen")
            } catch KeyringRestorationRefusal.several(let kept) {
                #expect(kept.map(\.revision) == [1, 2])
            }
            do {
                _ = try await Self.restore(app, ada, revision: 3)
                Issue.record("the present one was restored")
            } catch let error as KeyringRestorationRefusal {
                #expect("\(error)".contains("revision 1 was replaced at 2026-01-01T00:00:01.000000Z without"))
            }
            #expect(try await Self.restore(app, ada, revision: 1).newRevision == 4)
            #expect(try await ada.client.get(Self.path).string("keyring") == good)
        }
    }

    @Test func `a wrong choice leaves every other keyring, also the one that was replaced with the password key`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var keyrings: [String] = []
            func put(isProven: Bool) async throws {
                app.clock.advance(by: .seconds(1))
                keyrings.append(Fixtures.sealed())
                var members: [(name: String, value: JSONValue)] = [
                    (name: "keyring", value: .string(keyrings[keyrings.count - 1]))
                ]
                if isProven { members.append((name: "currentPasswordKey", value: .string(ada.passwordKey))) }
                let condition = keyrings.count == 1 ? ["If-None-Match": "*"] : ["If-Match": "*"]
                let reply = try await ada.client.put(Self.path, .object(JSONObject(members)), condition)
                #expect(reply.status < 300, "\(reply)")
            }
            // The good one is replaced with the password key, by a faulty app, and four times without it.
            for isProven in [false, true, false, false, false, false] { try await put(isProven: isProven) }
            // Revisions are 1 to 6. The admin takes every wrong one first.
            for revision: Int64 in [2, 3, 4, 5] {
                app.clock.advance(by: .seconds(1))
                let restored = try await Self.restore(app, ada, revision: revision)
                #expect(restored.newRevision == revision + 5)
                #expect(
                    try await ada.client.get(Self.path).string("keyring") == keyrings[Int(revision) - 1])
                #expect(try await ada.client.get(Self.path + "/kept").array("keyrings")?.count == 5)
            }
            #expect(try await Self.restore(app, ada, revision: 1).newRevision == 11)
            #expect(try await ada.client.get(Self.path).string("keyring") == keyrings[0])
            // The place of the one that was replaced with the password key is still one.
            let list = try await ada.client.get(Self.path + "/kept")
            let proven = (0..<5).filter { list.bool("keyrings.\($0).withPasswordKey") == true }
            #expect(proven.count == 1)
        }
    }
}
