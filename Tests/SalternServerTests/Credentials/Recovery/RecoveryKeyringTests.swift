import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// Whoever changes the data keys says what the printed code opens from then on.
@Suite struct RecoveryKeyringTests {
    /// An account with a keyring at revision 2 and a recovery that opens it.
    private static func prepared(_ app: TestApplication) async throws -> TestAccount {
        let ada = try await app.register()
        let created = try await ada.client.put(
            "/v1/account/keyring", ["keyring": .string(Fixtures.sealed())], ["If-None-Match": "*"])
        #expect(created.bool("recovery.set") == false)
        #expect(try await ada.setRecovery(RecoveryTests.code, keyring: Fixtures.sealed()).status == 200)
        return ada
    }

    /// A way to change the data keys, and how its request is sent with further members.
    enum Change: String, CaseIterable {
        case keyring, credential, userid, rotation

        /// Uses the code after the change.
        func recover(_ ada: TestAccount, _ app: TestApplication) async throws -> TestResponse {
            let userid = self == .userid ? "moved-\(ada.userid)" : ada.userid
            return try await app.client.post(
                "/v1/recoveries", ["userid": .string(userid), "recoveryKey": .string(RecoveryTests.code)])
        }

        func send(
            _ ada: TestAccount, keyring: String, revision: Int64 = 2, with more: [String: JSONValue?]
        ) async throws -> TestResponse {
            switch self {
            case .keyring:
                let body = NewKey(of: ada, to: "").with(
                    ["currentPasswordKey": nil, "passwordKey": nil, "kdf": nil, "keyring": .string(keyring)]
                ).with(more["removeRecovery"] == true ? ["currentPasswordKey": .string(ada.passwordKey)] : [:]).with(
                    more)
                return try await ada.client.put(
                    "/v1/account/keyring", body.body, ["If-Match": "\"\(revision)\""])
            case .credential, .userid, .rotation:
                var request = NewKey(of: ada, to: "new").with(
                    ["keyring": .string(keyring), "keyringRevision": .integer(revision)]
                ).with(more)
                if self == .credential { return try await ada.client.put("/v1/account/credential", request.body) }
                if self == .userid {
                    request = request.with(["userid": .string("moved-\(ada.userid)")])
                    return try await ada.client.put("/v1/account/userid", request.body)
                }
                var rotation = RotationClient(ada)
                try await rotation.open()
                try await rotation.stageAll()
                return try await ada.client.post("/v1/rotations/\(rotation.id)/commit", request.body)
            }
        }
    }

    @Test(arguments: Change.allCases)
    func `other data keys need a word about the recovery, and nothing is done without`(_ change: Change) async throws {
        try await TestApplication.with { app in
            let ada = try await Self.prepared(app)
            let before = try await ada.client.get("/v1/account/keyring").string("keyring")
            let refused = try await change.send(ada, keyring: Fixtures.sealed(), with: [:])
            #expect(refused.status == 428, "\(refused)")
            #expect(refused.code == "recovery_keyring_required")
            #expect(refused.string("field") == "recoveryKeyring")
            #expect(try await ada.client.get("/v1/account/keyring").string("keyring") == before)
            #expect(try await app.logsIn(ada, ada.passwordKey))
            let both = try await change.send(
                ada, keyring: Fixtures.sealed(),
                with: ["recoveryKeyring": .string(Fixtures.sealed()), "removeRecovery": true])
            #expect(both.status == 422)
            #expect(both.code == "conflicting_members")
        }
    }

    @Test(arguments: Change.allCases)
    func `the code opens the new keyring from the moment on that the account has it`(_ change: Change) async throws {
        try await TestApplication.with { app in
            let ada = try await Self.prepared(app)
            let (keyring, recovery) = (Fixtures.sealed(), Fixtures.sealed())
            let reply = try await change.send(
                ada, keyring: keyring, with: ["recoveryKeyring": .string(recovery), "removeRecovery": false])
            #expect(reply.status == 200, "\(reply)")
            #expect(reply.bool("recovery.set") == true)
            let recovered = try await change.recover(ada, app)
            #expect(recovered.string("keyring") == recovery)
            #expect(recovered.integer("keyringRevision") == 3)
            #expect(try await ada.client.get("/v1/account/keyring").string("keyring") == keyring)
        }
    }

    @Test(arguments: Change.allCases)
    func `a recovery that is given up opens nothing, and reply and security log say so`(_ change: Change) async throws {
        try await TestApplication.with { app in
            let ada = try await Self.prepared(app)
            let token = try await app.recover(ada, RecoveryTests.code).string("session.token")
            let reply = try await change.send(ada, keyring: Fixtures.sealed(), with: ["removeRecovery": true])
            #expect(reply.status == 200, "\(reply)")
            #expect(reply.bool("recovery.set") == false)
            #expect(try await ada.client.get("/v1/account").bool("recovery.set") == false)
            #expect(try await app.events(of: ada).contains("recovery_removed"))
            #expect(try await change.recover(ada, app).status == 401)
            let restricted = app.client.with(token: token)
            let late = try await restricted.put(
                "/v1/account/credential", RecoveryTests.credential(Fixtures.passwordKey("late")))
            #expect(late.status == 401)
        }
    }

    @Test func `a session alone removes no recovery, and a keyring that it replaces leaves an event`() async throws {
        try await TestApplication.with { app in
            let ada = try await Self.prepared(app)
            let before = try await app.events(of: ada)
            let garbage: JSONValue = ["keyring": .string(Fixtures.sealed()), "removeRecovery": true]
            let bare = try await ada.client.put("/v1/account/keyring", garbage, ["If-Match": "*"])
            #expect(bare.status == 422 && bare.code == "missing_member", "\(bare)")
            #expect(bare.string("field") == "currentPasswordKey")
            let wrong: JSONValue = [
                "keyring": .string(Fixtures.sealed()), "removeRecovery": true,
                "currentPasswordKey": .string(Fixtures.passwordKey("wrong")),
            ]
            let refused = try await ada.client.put("/v1/account/keyring", wrong, ["If-Match": "*"])
            #expect(refused.status == 403 && refused.code == "wrong_credentials", "\(refused)")
            #expect(try await ada.client.get("/v1/account").bool("recovery.set") == true)
            #expect(try await ada.client.get("/v1/account/keyring").integer("revision") == 2)
            #expect(try await app.events(of: ada).filter { $0 != "failed_current_keys" } == before)

            for keyring in [Fixtures.sealed(), Fixtures.sealed()] {
                let body: JSONValue = ["keyring": .string(keyring), "recoveryKeyring": .string(Fixtures.sealed())]
                #expect(try await ada.client.put("/v1/account/keyring", body, ["If-Match": "*"]).status == 200)
            }
            #expect(try await app.events(of: ada).filter { $0 == "keyring_changed" }.count == 2)
        }
    }

    @Test(arguments: [Change.keyring, .credential])
    func `a retry writes nothing, not even over a code that was set meanwhile`(_ change: Change) async throws {
        try await TestApplication.with { app in
            let ada = try await Self.prepared(app)
            let keyring = Fixtures.sealed()
            let more: [String: JSONValue?] = ["recoveryKeyring": .string(Fixtures.sealed())]
            #expect(try await change.send(ada, keyring: keyring, with: more).status == 200)
            let (code, later) = (Fixtures.passwordKey("a later code"), Fixtures.sealed())
            let currentKey = change == .credential ? Fixtures.passwordKey("new") : nil
            #expect(try await ada.setRecovery(code, keyring: later, currentKey: currentKey).status == 200)
            let again = try await change.send(ada, keyring: keyring, with: more)
            #expect(again.status == 200, "\(again)")
            #expect(again.bool("recovery.set") == true)
            #expect(try await app.recover(ada, code).string("keyring") == later)
        }
    }

    @Test func `without a recovery nothing is asked for, and what is sent has no effect`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let reply = try await ada.client.put(
                "/v1/account/keyring",
                ["keyring": .string(Fixtures.sealed()), "recoveryKeyring": .string(Fixtures.sealed())],
                ["If-None-Match": "*"])
            #expect(reply.status == 201, "\(reply)")
            #expect(reply.bool("recovery.set") == false)
            #expect(try await app.recover(ada, RecoveryTests.code).status == 401)
            let changed = try await Change.credential.send(
                ada, keyring: Fixtures.sealed(), revision: 1, with: ["removeRecovery": true])
            #expect(changed.status == 200)
            #expect(try await !app.events(of: ada).contains("recovery_removed"))
        }
    }

    @Test func `a restricted session seals the keys for the code as well, however long both are`() async throws {
        try await TestApplication.with { app in
            let ada = try await Self.prepared(app)
            let token = try await app.recover(ada, RecoveryTests.code).string("session.token")
            let restricted = app.client.with(token: token)
            let recovery = Fixtures.sealed(plaintext: 65_536 - 28)
            let request = NewKey(of: ada, to: "new").with(
                [
                    "currentPasswordKey": nil, "keyring": .string(Fixtures.sealed(plaintext: 65_536 - 28)),
                    "keyringRevision": 2,
                ])
            #expect(
                try await restricted.put("/v1/account/credential", request.body).code == "recovery_keyring_required")
            let whole = request.with(["recoveryKeyring": .string(recovery)]).body
            for _ in 0..<2 {
                let reply = try await restricted.put("/v1/account/credential", whole)
                #expect(reply.status == 200, "\(reply)")
                #expect(reply.bool("recovery.set") == true)
            }
            #expect(try await app.recover(ada, RecoveryTests.code).string("keyring") == recovery)
        }
    }

    @Test func `code and account's keyring are set at once, or neither is`() async throws {
        try await TestApplication.with { app in
            let ada = try await Self.prepared(app)
            let (account, opened) = (Fixtures.sealed(), Fixtures.sealed())
            func set(_ revision: Int64?) async throws -> TestResponse {
                let body = NewKey(of: ada, to: "").with(
                    [
                        "passwordKey": nil, "kdf": nil, "recoveryKey": .string(Fixtures.passwordKey("second code")),
                        "keyring": .string(opened), "accountKeyring": .string(account),
                        "accountKeyringRevision": revision.map { .integer($0) },
                    ])
                return try await ada.client.put("/v1/account/recovery", body.body)
            }
            #expect(try await set(nil).string("field") == "accountKeyringRevision")
            for stale in [0, 7] as [Int64] {
                let refused = try await set(stale)
                #expect(refused.status == 409)
                #expect(refused.code == "keyring_changed")
                #expect(refused.string("field") == "accountKeyringRevision")
            }
            #expect(try await app.recover(ada, RecoveryTests.code).status == 201)
            for _ in 0..<2 {
                let reply = try await set(2)
                #expect(reply.status == 200, "\(reply)")
                #expect(reply.integer("keyringRevision") == 3)
            }
            #expect(try await ada.client.get("/v1/account/keyring").string("keyring") == account)
            #expect(try await app.recover(ada, Fixtures.passwordKey("second code")).string("keyring") == opened)
            #expect(try await app.recover(ada, RecoveryTests.code).status == 401)
        }
    }

    @Test func `a code is set for the data keys that there are, and what was sealed to the one before comes too late`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await Self.prepared(app)
            let (opened, code) = (Fixtures.sealed(), Fixtures.passwordKey("another code"))
            func set(_ revision: Int64?) async throws -> TestResponse {
                let body = NewKey(of: ada, to: "").with(
                    [
                        "passwordKey": nil, "kdf": nil, "recoveryKey": .string(code), "keyring": .string(opened),
                        "accountKeyringRevision": revision.map { .integer($0) },
                    ])
                return try await ada.client.put("/v1/account/recovery", body.body)
            }
            let unspecified = try await set(nil)
            #expect(unspecified.status == 428 && unspecified.code == "keyring_required", "\(unspecified)")
            #expect(unspecified.string("field") == "accountKeyringRevision")
            #expect(unspecified.integer("revision") == 2)
            let stale = try await set(1)
            #expect(stale.status == 409 && stale.code == "keyring_changed", "\(stale)")
            #expect(try await app.recover(ada, RecoveryTests.code).status == 201)
            for _ in 0..<2 { #expect(try await set(2).status == 200) }
            let late = try await Change.keyring.send(
                ada, keyring: Fixtures.sealed(), with: ["recoveryKeyring": .string(Fixtures.sealed())])
            #expect(late.status == 412)
            #expect(late.integer("current.revision") == 3)
            #expect(try await app.recover(ada, code).string("keyring") == opened)
        }
    }

    @Test func `the keyring that there is, at its revision, is a word about the recovery alone`() async throws {
        try await TestApplication.with { app in
            let ada = try await Self.prepared(app)
            let keyring = try #require(try await ada.client.get("/v1/account/keyring").string("keyring"))
            let opened = Fixtures.sealed()
            let resealed = try await Change.keyring.send(
                ada, keyring: keyring, with: ["recoveryKeyring": .string(opened)])
            #expect(resealed.status == 200 && resealed.integer("revision") == 2)
            #expect(try await app.recover(ada, RecoveryTests.code).string("keyring") == opened)
            let removed = try await Change.keyring.send(ada, keyring: keyring, with: ["removeRecovery": true])
            #expect(removed.bool("recovery.set") == false)
            #expect(try await app.recover(ada, RecoveryTests.code).status == 401)
        }
    }

    /// Devices put keyrings, set codes and remove them, all at once: whatever the code opens in the end was sealed together
    /// with the keyring that the account has.
    @Test(arguments: 0..<6)
    func `whoever wins, keyring and code are of one change`(_ round: Int) async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await Self.prepared(app)
            let partner = Dictionary(uniqueKeysWithValues: (0..<12).map { _ in (Fixtures.sealed(), Fixtures.sealed()) })
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, (keyring, opened)) in partner.enumerated() {
                    group.addTask {
                        for _ in 0..<4 {
                            let found = try await ada.client.get("/v1/account/keyring")
                            let present = Int64(try #require(found.integer("revision")))
                            let reply: TestResponse
                            if index.isMultiple(of: 3) {
                                let body = NewKey(of: ada, to: "").with(
                                    [
                                        "passwordKey": nil, "kdf": nil, "recoveryKey": .string(RecoveryTests.code),
                                        "keyring": .string(opened), "accountKeyring": .string(keyring),
                                        "accountKeyringRevision": .integer(present),
                                    ])
                                reply = try await ada.client.put("/v1/account/recovery", body.body)
                            } else {
                                reply = try await Change.keyring.send(
                                    ada, keyring: keyring, revision: present,
                                    with: ["recoveryKeyring": .string(opened)])
                            }
                            #expect([200, 409, 412, 428].contains(reply.status), "\(reply)")
                            if reply.status == 200 { break }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let keyring = try #require(try await ada.client.get("/v1/account/keyring").string("keyring"))
            let opened = try #require(try await app.recover(ada, RecoveryTests.code).string("keyring"))
            #expect(partner[keyring] == opened)
        }
    }
}
