import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct PasskeyUnlockTests {
    private static func setBox(_ account: TestAccount, _ id: String) async throws -> TestResponse {
        try await account.client.put(
            "/v1/account/passkeys/\(id)/box", account.currentKey.with("sealedPrivateKey", "a2V5").with("box", "Ym94"))
    }

    @Test func `a log-in returns what unlocks the keyring`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            #expect(try await Self.setBox(ada, key.idText).status == 204)
            let answer = try await key.get(app.passkeyLogInOptions())
            let opened = try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
            #expect(opened["unlock"] == ["sealedPrivateKey": "a2V5", "box": "Ym94"])
            let listed = try await ada.client.get("/v1/account/passkeys").array("passkeys")
            #expect(listed?.first?.member("unlocks") == true)
        }
    }

    @Test func `an operator counts an account's passkeys, and those that unlock`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let eve = try await app.register()
            try await app.addPasskey(ada)
            let key = try await app.addPasskey(ada, logsIn: true)
            #expect(try await Self.setBox(ada, key.idText).status == 204)
            for (account, counts) in [(ada, [2, 1]), (eve, [0, 0])] as [(TestAccount, [Int64])] {
                let id = try #require(AccountID(pathParameter: account.id))
                let (described, _) = try await app.asOwner { [now = app.clock.now] in
                    try await AccountInspection(database: $0, sessions: SessionPolicy()).describe(.id(id), now: now)
                }
                #expect([described.passkeys, described.unlockingPasskeys] == counts)
            }
        }
    }

    @Test func `only a passkey of the account that logs in has a box`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let eve = try await app.register()
            let second = try await app.addPasskey(ada)
            #expect(try await Self.setBox(ada, second.idText).code == "passkey_does_not_log_in")
            #expect(try await Self.setBox(eve, second.idText).status == 404)
            let key = try await app.addPasskey(ada, logsIn: true)
            let empty = ada.currentKey.with("sealedPrivateKey", "a2V5").with("box", "")
            #expect(
                try await ada.client.put("/v1/account/passkeys/\(key.idText)/box", empty).code == "invalid_unlock_box")
        }
    }

    @Test func `box null ends the unlocking, and can be repeated`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            let path = "/v1/account/passkeys/\(key.idText)/box"
            #expect(try await Self.setBox(ada, key.idText).status == 204)
            #expect(try await ada.client.put(path, ada.currentKey).code == "missing_member")
            let halved = ada.currentKey.with("box", "Ym94")
            #expect(try await ada.client.put(path, halved).code == "missing_member")
            let both = ada.currentKey.with("box", .null).with("sealedPrivateKey", "a2V5")
            #expect(try await ada.client.put(path, both).code == "unknown_member")
            let end = ada.currentKey.with("box", .null)
            for _ in 0..<2 { #expect(try await ada.client.put(path, end).status == 204) }
            #expect(try await ada.client.put("/v1/account/passkeys/AAAA/box", end).status == 404)
            let answer = try await key.get(app.passkeyLogInOptions())
            let opened = try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
            #expect(opened.status == 201 && opened["unlock"] == nil)
            let listed = try await ada.client.get("/v1/account/passkeys").array("passkeys")
            #expect(listed?.first?.member("unlocks") == false)
            let events = try await app.events(of: ada).filter { $0.hasPrefix("passkey_unlock") }
            #expect(events.sorted() == ["passkey_unlock_removed", "passkey_unlock_set"])
        }
    }

    @Test func `a new password key comes with new boxes of all unlocking passkeys`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            try await app.addPasskey(ada)
            #expect(try await Self.setBox(ada, key.idText).status == 204)
            let change: JSONValue = [
                "currentPasswordKey": .string(ada.passwordKey), "passwordKey": .string(Fixtures.passwordKey("new")),
                "kdf": ["iterations": 600_000],
            ]
            let required = try await ada.client.put("/v1/account/credential", change)
            #expect(required.status == 428)
            #expect(required.code == "passkey_boxes_required")
            #expect(required["passkeys"] == [.string(key.idText)])
            let unknown = change.with(
                "passkeyBoxes", [["id": .string(key.idText), "box": "bmV3"], ["id": "AAAA", "box": "bmV3"]])
            #expect(try await ada.client.put("/v1/account/credential", unknown).status == 428)
            let boxes = change.with("passkeyBoxes", [["id": .string(key.idText), "box": "bmV3"]])
            #expect(try await ada.client.put("/v1/account/credential", boxes).status == 200)
            let answer = try await key.get(app.passkeyLogInOptions())
            let opened = try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
            #expect(opened["unlock"] == ["sealedPrivateKey": "a2V5", "box": "bmV3"])
        }
    }

    @Test func `a new password key can end the unlocking by a passkey`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let (kept, dropped) = (
                try await app.addPasskey(ada, logsIn: true), try await app.addPasskey(ada, logsIn: true)
            )
            for key in [kept, dropped] { #expect(try await Self.setBox(ada, key.idText).status == 204) }
            let change: JSONValue = [
                "currentPasswordKey": .string(ada.passwordKey), "passwordKey": .string(Fixtures.passwordKey("new")),
                "kdf": ["iterations": 600_000],
            ]
            func boxes(_ box: JSONValue, _ other: JSONValue) -> JSONValue {
                change.with(
                    "passkeyBoxes",
                    [["id": .string(kept.idText), "box": box], ["id": .string(dropped.idText), "box": other]])
            }
            let half = change.with("passkeyBoxes", [["id": .string(dropped.idText), "box": .null]])
            #expect(try await ada.client.put("/v1/account/credential", half).code == "passkey_boxes_required")
            #expect(try await ada.client.put("/v1/account/credential", boxes("bmV3", "")).code == "invalid_unlock_box")
            for _ in 0..<2 {
                #expect(try await ada.client.put("/v1/account/credential", boxes("bmV3", .null)).status == 200)
            }
            let listed = try #require(try await ada.client.get("/v1/account/passkeys").array("passkeys"))
            let unlocking = listed.filter { $0.member("unlocks") == true }
            #expect(listed.count == 2 && unlocking.map { $0.member("id") } == [.string(kept.idText)])
            let answer = try await dropped.get(app.passkeyLogInOptions())
            let opened = try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
            #expect(opened.status == 201 && opened["unlock"] == nil)
            #expect(try await app.events(of: ada).filter { $0 == "passkey_unlock_removed" }.count == 1)
        }
    }

    /// A client removes the boxes of passkeys that its keyring does not have. It must have the present one.
    @Test func `a keyring that has changed is named before missing boxes`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            #expect(try await Self.setBox(ada, key.idText).status == 204)
            let keyring = JSONValue.string(Fixtures.sealed())
            let put = try await ada.client.put(
                "/v1/account/keyring", ["keyring": keyring], ["If-None-Match": "*"])
            let revision = try #require(put["revision"])
            let change: JSONValue = [
                "currentPasswordKey": .string(ada.passwordKey), "passwordKey": .string(Fixtures.passwordKey("new")),
                "kdf": ["iterations": 600_000], "keyring": keyring,
            ]
            let stale = try await ada.client.put("/v1/account/credential", change.with("keyringRevision", 0))
            #expect(stale.code == "keyring_changed")
            let present = try await ada.client.put("/v1/account/credential", change.with("keyringRevision", revision))
            #expect(present.code == "passkey_boxes_required")
        }
    }
}
