import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct DeletionRaceTests {
    @Test func `nothing is left, whatever is written, opened and registered meanwhile`() async throws {
        try await TestApplication.with(connections: 4, tally: SessionTally(interval: 1)) { app in
            try await app.prepareAccountRows()
            // Each log-in ends a session, and notes that.
            try await app.administer("UPDATE saltern.plans SET max_sessions = 1")
            for round in 0..<10 {
                let ada = try await app.register("ada-\(round)")
                // The next right log-in notes these in the security log.
                _ = try await app.logInStatus(ada.userid, Fixtures.passwordKey("wrong"))
                let registered = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for index in 0..<6 {
                        group.addTask {
                            _ = try await ada.client.put(
                                "/v1/items/\(Fixtures.uuid())", ItemTests.item(), ["If-None-Match": "*"])
                            return false
                        }
                        group.addTask {
                            _ = try await app.logInStatus(ada.userid, ada.passwordKey)
                            return false
                        }
                        if index == 2 {
                            group.addTask {
                                try await Self.deleteThoughTrimmed(app, ada)
                                return false
                            }
                        }
                        group.addTask {
                            _ = try await ada.client.put("/v1/account/receipt", ["receipt": .string("\(index)")])
                            return false
                        }
                        group.addTask {
                            _ = try await ada.client.put(
                                "/v1/account/keyring", ["keyring": .string(Fixtures.sealed())], ["If-None-Match": "*"])
                            return false
                        }
                        group.addTask {
                            let reply = try await app.client.post(
                                "/v1/accounts",
                                [
                                    "userid": .string(ada.userid),
                                    "passwordKey": .string(Fixtures.passwordKey("another person")),
                                    "kdf": ["iterations": 600_000],
                                ])
                            return reply.status == 201
                        }
                    }
                    return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
                }
                let left = try await app.accountRows(ada).filter { $0.value > 0 }
                #expect(left == ["audit_log.target_account": 1])
                #expect(registered <= 1)
                app.clock.advance(by: .seconds(120))
                let status = try await app.logInStatus(ada.userid, Fixtures.passwordKey("another person"))
                #expect(status == (registered == 1 ? 201 : 401))
                #expect(try await app.logInStatus(ada.userid, ada.passwordKey) != 201)
            }
        }
    }

    /// Deletes an account whose sessions others keep ending.
    private static func deleteThoughTrimmed(_ app: TestApplication, _ account: TestAccount) async throws {
        let body = TestClient.document(["currentPasswordKey": .string(account.passwordKey)])
        var client = account.client
        while true {
            let status = try await client.send(.delete, "/v1/account", body: body).status
            if status == 204 { return }
            #expect(status == 401)
            client = try await app.logIn(account)
        }
    }

    @Test func `of many deletions one deletes`() async throws {
        try await TestApplication.with(connections: 4) { app in
            for _ in 0..<6 {
                let ada = try await app.register()
                var clients = [ada.client]
                for _ in 1..<5 { clients.append(try await app.logIn(ada)) }
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for client in clients {
                        group.addTask {
                            try await client.send(
                                .delete, "/v1/account",
                                body: TestClient.document(["currentPasswordKey": .string(ada.passwordKey)])
                            ).status
                        }
                    }
                    return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
                }
                #expect(statuses[204] == 1)
                #expect(statuses.keys.allSatisfy { [204, 401, 403].contains($0) }, "\(statuses)")
            }
        }
    }
}
