import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// Many clients at once, on real PostgreSQL. What is asserted holds however they are interleaved.
@Suite struct CredentialRaceTests {
    private static let path = "/v1/account/credential"

    @Test func `no session that an old key opened survives a change of the key`() async throws {
        try await TestApplication.with(connections: 4) { app in
            for round in 0..<12 {
                let ada = try await app.register()
                let others = try await withThrowingTaskGroup(of: TestClient?.self) { group in
                    for _ in 0..<8 { group.addTask { try? await app.logIn(ada) } }
                    group.addTask {
                        let reply = try await ada.client.put(Self.path, NewKey(of: ada, to: "new \(round)").body)
                        #expect(reply.status == 200)
                        return nil
                    }
                    for _ in 0..<8 { group.addTask { try? await app.logIn(ada) } }
                    return try await group.reduce(into: [TestClient]()) { if let client = $1 { $0.append(client) } }
                }
                for client in others { #expect(try await client.get("/v1/account").status == 401) }
                #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 1)
                // The log-ins that came too late were failures.
                app.clock.advance(by: .seconds(120))
                #expect(try await app.logInStatus(ada.userid, Fixtures.passwordKey("new \(round)")) == 201)
                #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 401)
            }
        }
    }

    @Test func `of many changes of one key one wins, and its key is the one that logs in`() async throws {
        try await TestApplication.with(connections: 4) { app in
            for round in 0..<8 {
                let ada = try await app.register()
                var clients = [ada.client]
                for _ in 1..<5 { clients.append(try await app.logIn(ada)) }
                let replies = try await withThrowingTaskGroup(of: (String, TestResponse).self) { group in
                    for (index, client) in clients.enumerated() {
                        group.addTask {
                            let seed = "\(round) \(index)"
                            return (seed, try await client.put(Self.path, NewKey(of: ada, to: seed).body))
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                let winners = replies.filter { $0.1.status == 200 }
                #expect(winners.count == 1)
                #expect(replies.allSatisfy { [200, 401, 403].contains($0.1.status) })
                for (seed, _) in replies {
                    let status = try await app.logInStatus(ada.userid, Fixtures.passwordKey(seed))
                    #expect(status == (seed == winners.first?.0 ? 201 : 401))
                }
                var live = 0
                for client in clients where try await client.get("/v1/account").status == 200 { live += 1 }
                #expect(live == 1)
            }
        }
    }

    @Test func `the same change sent many times at once succeeds every time and happens once`() async throws {
        try await TestApplication.with(connections: 4) { app in
            for round in 0..<8 {
                let ada = try await app.register()
                let request = NewKey(of: ada, to: "new \(round)").with(["keyring": .string(Fixtures.sealed())])
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<6 { group.addTask { try await ada.client.put(Self.path, request.body).status } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(statuses == Array(repeating: 200, count: 6))
                #expect(try await app.events(of: ada).count { $0 == "credential_changed" } == 1)
                #expect(try await ada.client.get("/v1/account/keyring").integer("revision") == 1)
            }
        }
    }

    @Test func `of a keyring sealed anew and a change that seals it anew one wins`() async throws {
        try await TestApplication.with(connections: 4) { app in
            for round in 0..<12 {
                let ada = try await app.register()
                let first: JSONValue = ["keyring": .string(Fixtures.sealed())]
                _ = try await ada.client.put("/v1/account/keyring", first, ["If-None-Match": "*"])
                let (mine, other) = (Fixtures.sealed(), Fixtures.sealed())
                let phone = try await app.logIn(ada)
                async let change = ada.client.put(
                    Self.path,
                    NewKey(of: ada, to: "new \(round)").with(["keyring": .string(mine), "keyringRevision": 1]).body)
                async let put = phone.put(
                    "/v1/account/keyring", ["keyring": .string(other)], ["If-Match": "\"1\""])
                let (changed, written) = try await (change, put)
                let stored = try await ada.client.get("/v1/account/keyring")
                #expect(stored.integer("revision") == 2)
                if changed.status == 200 {
                    #expect(stored.string("keyring") == mine)
                    // The other session has ended with the change.
                    #expect(written.status == 401)
                } else {
                    #expect(changed.code == "keyring_changed")
                    #expect(written.status == 200)
                    #expect(stored.string("keyring") == other)
                    #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 201)
                }
            }
        }
    }

    @Test func `a userid that somebody registers and somebody else changes to has one account`() async throws {
        try await TestApplication.with(connections: 4) { app in
            for round in 0..<10 {
                let name = "wanted-\(round)"
                let ada = try await app.register()
                let bob = try await app.register()
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for account in [ada, bob] {
                        group.addTask {
                            let request = NewKey(of: account, to: account.userid + name).with([
                                "userid": .string(name)
                            ])
                            return try await account.client.put("/v1/account/userid", request.body).status
                        }
                    }
                    for index in 0..<4 {
                        group.addTask {
                            try await app.client.post(
                                "/v1/accounts",
                                [
                                    "userid": .string(name), "passwordKey": .string(Fixtures.passwordKey("\(index)")),
                                    "kdf": ["iterations": 600_000],
                                ]
                            ).status
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(statuses.count { $0 < 300 } == 1)
                #expect(statuses.count { $0 == 409 } == 5)
                for account in [ada, bob] {
                    let userid = try await account.client.get("/v1/account").string("userid")
                    let key = userid == name ? Fixtures.passwordKey(account.userid + name) : account.passwordKey
                    #expect(try await app.logInStatus(#require(userid), key) == 201)
                }
            }
        }
    }

    @Test func `two accounts that want each other's userids are both refused, without a deadlock`() async throws {
        try await TestApplication.with(connections: 4) { app in
            for _ in 0..<10 {
                let ada = try await app.register()
                let bob = try await app.register()
                async let first = ada.client.put(
                    "/v1/account/userid",
                    NewKey(of: ada, to: "1").with(["userid": .string(bob.userid)]).body)
                async let second = bob.client.put(
                    "/v1/account/userid",
                    NewKey(of: bob, to: "2").with(["userid": .string(ada.userid)]).body)
                #expect(try await first.code == "userid_taken")
                #expect(try await second.code == "userid_taken")
            }
        }
    }
}
