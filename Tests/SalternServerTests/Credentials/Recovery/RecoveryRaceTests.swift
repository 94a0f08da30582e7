import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct RecoveryRaceTests {
    @Test func `a key that is used many times at once leaves one session, which works`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            _ = try await ada.setRecovery(RecoveryTests.code)
            let tokens = try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        let reply = try await app.recover(ada, RecoveryTests.code)
                        // So many of one userid wait for their turn, and no more.
                        #expect([201, 429].contains(reply.status), "\(reply)")
                        return reply.string("session.token")
                    }
                }
                return try await group.reduce(into: [String]()) { if let token = $1 { $0.append(token) } }
            }
            #expect(try await app.stored().restrictedSessions == 1)
            // Whichever works sets its own key; the others open nothing.
            let winners = try await withThrowingTaskGroup(of: String?.self) { group in
                for token in tokens {
                    group.addTask {
                        let key = Fixtures.passwordKey(token)
                        let reply = try await app.client.with(token: token).put(
                            "/v1/account/credential", RecoveryTests.credential(key))
                        #expect([200, 401].contains(reply.status), "\(reply)")
                        return reply.status == 200 ? key : nil
                    }
                }
                return try await group.reduce(into: [String]()) { if let key = $1 { $0.append(key) } }
            }
            #expect(winners.count == 1)
            #expect(try await app.logsIn(ada, winners.first ?? ""))
            #expect(try await app.stored().restrictedSessions == 0)
        }
    }

    @Test(arguments: 0..<8)
    func `once a key is removed, nothing that it opened works`(_ round: Int) async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            _ = try await ada.setRecovery(RecoveryTests.code)
            async let removing = ada.removeRecovery()
            let tokens = try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<10 {
                    group.addTask { try await app.recover(ada, RecoveryTests.code).string("session.token") }
                }
                return try await group.reduce(into: [String]()) { if let token = $1 { $0.append(token) } }
            }
            #expect(try await removing.status == 204)
            #expect(try await app.stored().restrictedSessions == 0)
            for token in tokens {
                let reply = try await app.client.with(token: token).put(
                    "/v1/account/credential", RecoveryTests.credential(Fixtures.passwordKey("new")))
                #expect(reply.status == 401)
            }
            // The recoveries that came too late were failures.
            app.clock.advance(by: .seconds(60))
            #expect(try await app.logsIn(ada, ada.passwordKey))
        }
    }

    @Test(arguments: 0..<8)
    func `a recovery and a change of the credential come one after the other`(_ round: Int) async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            _ = try await ada.setRecovery(RecoveryTests.code)
            let token = try #require(try await app.recover(ada, RecoveryTests.code).string("session.token"))
            let ownKey = Fixtures.passwordKey("set by the person")
            let recoveredKey = Fixtures.passwordKey("set by the recovery")
            async let changing = ada.client.put(
                "/v1/account/credential",
                [
                    "currentPasswordKey": .string(ada.passwordKey), "passwordKey": .string(ownKey),
                    "kdf": ["iterations": 600_000],
                ])
            async let recovering = app.client.with(token: token).put(
                "/v1/account/credential", RecoveryTests.credential(recoveredKey))
            async let opening = app.recover(ada, RecoveryTests.code)
            let (changed, recovered, opened) = try await (changing, recovering, opening)
            // The change ends the restricted session, and the recovery ends the session and the key of the change. Or
            // the key was used once more in between, which replaces the restricted session.
            #expect(!(changed.status == 200 && recovered.status == 200))
            #expect([200, 401, 403].contains(changed.status), "\(changed)")
            #expect([200, 401].contains(recovered.status), "\(recovered)")
            #expect(opened.status == 201)
            #expect(try await app.logsIn(ada, ownKey) == (changed.status == 200))
            #expect(try await app.logsIn(ada, recoveredKey) == (recovered.status == 200))
            // The latest restricted session works, unless it came before what ends all of them.
            let last = app.client.with(token: opened.string("session.token"))
            let lastKey = Fixtures.passwordKey("set at last")
            let reply = try await last.put("/v1/account/credential", RecoveryTests.credential(lastKey))
            #expect([200, 401].contains(reply.status))
            #expect(try await app.logsIn(ada, lastKey) == (reply.status == 200))
        }
    }
}
