import HTTPCore
import Postgres
import SalternTesting

@testable import SalternServer

/// Something that writes: a route, an admin's act, or the purge.
struct WritingAct: Sendable, CustomStringConvertible {
    /// Does it once; the number tells one time from another. Returns the reply's status.
    typealias Run = @Sendable (Int) async throws -> Int

    let description: String
    /// Makes what it needs, and returns what does it.
    let prepare: @Sendable (WrittenAccount, SeparateClient) async throws -> Run

    /// A route: what it needs of the account, and the request.
    static func route<Need: Sendable>(
        _ name: String, _ need: @escaping @Sendable (WrittenAccount) async throws -> Need,
        _ send: @escaping @Sendable (WrittenAccount, Need, Int) async throws -> TestResponse
    ) -> WritingAct {
        WritingAct(description: name) { written, _ in
            let need = try await need(written)
            return { try await send(written, need, $0).status }
        }
    }

    static func route(
        _ name: String, _ send: @escaping @Sendable (WrittenAccount, Int) async throws -> TestResponse
    ) -> WritingAct {
        route(name, { _ in }) { written, _, index in try await send(written, index) }
    }

    /// An act of an admin.
    private static func admin(
        _ name: String,
        _ act: @escaping @Sendable (AccountAdministration, AccountReference, AuditSignature) async throws -> Void
    ) -> WritingAct {
        WritingAct(description: name) { written, owner in
            { _ in
                let signature = InviteTests.signature(written.app)
                guard let id = AccountID(pathParameter: written.account.id) else { return 500 }
                do {
                    try await owner.run { try await act(AccountAdministration(database: $0), .id(id), signature) }
                } catch is AccountRefusal {
                    return 404
                }
                return 200
            }
        }
    }

    static let items: [WritingAct] = [
        route("PUT item", { try await $0.item() }) { written, item, _ in
            try await written.client.put(
                item, RotationClient.item(Fixtures.sealed(plaintext: 4)), ["If-Match": "*"])
        },
        route("PUT new item") { written, _ in
            try await written.client.put("/v1/items/\(Fixtures.uuid())", ItemTests.item(), ["If-None-Match": "*"])
        },
        route("DELETE item", { try await $0.account.createItem() }) { written, item, _ in
            try await written.client.delete(item, ["If-Match": "*"])
        },
        route("restore item", { try await $0.deletedItem() }) { written, item, _ in
            try await written.client.send(.post, item + "/restore", fields: ["If-Match": "*"])
        },
        route("batch", { try await ($0.item(), $0.account.createItem()) }) { written, items, _ in
            func id(_ path: String) -> String { String(path.dropFirst("/v1/items/".count)) }
            return try await written.client.post(
                "/v1/items/batch",
                [
                    "operations": [
                        BatchTests.put(Fixtures.uuid(), 0, ItemTests.item()), BatchTests.delete(id(items.1)),
                        BatchTests.delete(id(items.0)),
                    ]
                ])
        },
        route("PUT keyring") { written, index in
            try await written.client.put(
                "/v1/account/keyring", ["keyring": .string(Fixtures.sealed())], ["If-None-Match": "*"])
        },
        route("PUT receipt") { written, index in
            try await written.client.put("/v1/account/receipt", ["receipt": .string("\(index)")])
        },
        WritingAct(description: "export") { written, _ in
            { _ in
                do {
                    return try await written.client.post("/v1/account/export", written.account.currentKey).status
                } catch is ResponseStreamEnded {
                    return 401
                }
            }
        },
    ]

    static let shares: [WritingAct] = [
        route("POST share") { written, _ in try await written.client.post("/v1/shares", ShareFixtures.content()) },
        route("PUT share", { try await $0.shares() }) { written, shares, index in
            try await written.client.put(shares[index % shares.count].path, ShareFixtures.content())
        },
        route("PUT share by token", { try await $0.shares() }) { written, shares, index in
            let share = shares[index % shares.count]
            return try await written.app.client.with(token: share.manageToken).put(
                share.path, ShareFixtures.content())
        },
        route("DELETE share", { try await $0.shares() }) { written, shares, index in
            try await written.client.delete(shares[index % shares.count].path)
        },
        route("DELETE share by token", { try await $0.shares() }) { written, shares, index in
            let share = shares[index % shares.count]
            return try await written.app.client.with(token: share.manageToken).delete(share.path)
        },
        route("GET share", { try await $0.shares() }) { written, shares, _ in
            try await written.app.client.get(shares[0].path)
        },
    ]

    static let sessions: [WritingAct] = [
        route("log-in") { written, _ in
            try await written.app.client.post(
                "/v1/sessions",
                ["userid": .string(written.account.userid), "passwordKey": .string(written.account.passwordKey)])
        },
        route("failed log-in") { written, _ in
            try await written.app.client.post(
                "/v1/sessions",
                ["userid": .string(written.account.userid), "passwordKey": .string(Fixtures.passwordKey("wrong"))])
        },
        route("recovery", { try await $0.setRecovery() }) { written, _, _ in
            try await written.app.recover(written.account, RecoveryTests.code)
        },
        route("end other sessions") { written, _ in try await written.client.delete("/v1/sessions") },
        route("end session") { written, _ in
            try await written.client.delete("/v1/sessions/\(written.account.sessionID)")
        },
        route("end current session") { written, _ in try await written.client.delete("/v1/sessions/current") },
    ]

    static let credentials: [WritingAct] = [
        route("change credential") { written, _ in
            try await written.client.put("/v1/account/credential", NewKey(of: written.account, to: "new").body)
        },
        route("change restricted", { try await $0.restricted() }) { written, restricted, _ in
            try await restricted.put("/v1/account/credential", RecoveryTests.credential(Fixtures.passwordKey("new")))
        },
        route("change userid") { written, _ in
            try await written.client.put(
                "/v1/account/userid",
                NewKey(of: written.account, to: "new").with(["userid": .string(Fixtures.userid())]).body)
        },
        route("register the userid") { written, _ in
            try await InviteTests.register(written.app, nil, written.account.userid)
        },
        route("DELETE account") { written, _ in
            try await written.client.send(
                .delete, "/v1/account", body: TestClient.document(written.account.currentKey))
        },
        route("set recovery") { written, index in
            try await written.account.setRecovery(Fixtures.passwordKey("code \(index)"))
        },
        route("remove recovery", { try await $0.setRecovery() }) { written, _, _ in
            try await written.client.send(
                .delete, "/v1/account/recovery", body: TestClient.document(written.account.currentKey))
        },
        route("begin second factor") { written, _ in
            try await written.client.post("/v1/account/totp", written.account.currentKey)
        },
        route("confirm second factor", { try await $0.phone() }) { written, phone, _ in
            try await written.client.post("/v1/account/totp/confirm", ["totp": .string(phone.code())])
        },
        route("renew recovery codes") { written, _ in
            try await written.client.post("/v1/account/totp/recovery-codes", written.account.currentKey)
        },
        route("end second factor", { try await $0.phone() }) { written, _, _ in
            try await written.account.deleteSecondFactor()
        },
    ]

    static let rotations: [WritingAct] = [
        route("open rotation") { written, _ in
            try await written.client.post("/v1/rotations", written.account.currentKey)
        },
        route("stage", { try await ($0.rotation(), $0.item()) }) { written, made, _ in
            let id = String(made.1.dropFirst("/v1/items/".count))
            return try await made.0.stage([RotationClient.staged(id, 1, Fixtures.sealed(plaintext: 4))])
        },
        route("commit", { try await $0.rotation() }) { _, rotation, _ in try await rotation.commit() },
        route("discard rotation", { try await $0.rotation() }) { written, rotation, _ in
            try await written.client.delete("/v1/rotations/\(rotation.id)")
        },
    ]

    static let operators: [WritingAct] = [
        admin("lock") { _ = try await $0.lock($1, by: $2) },
        admin("unlock") { _ = try await $0.unlock($1, by: $2) },
        admin("end sessions") { _ = try await $0.endSessions($1, by: $2) },
        admin("set plan") { _ = try await $0.assign("pro", to: $1, by: $2) },
        admin("delete") { _ = try await $0.delete($1, by: $2) },
        WritingAct(description: "remove second factor") { written, owner in
            { _ in
                let signature = InviteTests.signature(written.app)
                do {
                    try await owner.run {
                        _ = try await SecondFactorAdministration(database: $0).remove(
                            of: .userid(written.account.userid), by: signature)
                    }
                } catch is SecondFactorAdministration.Refusal {
                    return 404
                } catch is AccountRefusal {
                    return 404
                }
                return 200
            }
        },
        WritingAct(description: "purge") { written, _ in
            { _ in
                let postgres = written.app.postgres
                // So much later that everything has expired but the sessions.
                let now = written.app.clock.now + .seconds(100 * 86_400)
                let sessions = SessionPolicy(idleTimeout: .seconds(200 * 86_400))
                let policy = PurgePolicy(eventRetention: .seconds(50 * 86_400))
                _ = try await written.app.run {
                    try await Purge(database: postgres, sessions: sessions, policy: policy, now: now).run()
                }
                return 200
            }
        },
    ]

    static let all = items + shares + sessions + credentials + rotations + operators + vaults
}
