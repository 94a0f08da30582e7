import Cryptography
import HTTPCore
import SalternTesting
import Synchronization
import Testing
import VaultLog

/// Changes of a vault's members against writes, on two nodes.
@Suite struct VaultRaceTests {
    private static let writesOfEach = 20

    /// A join that others have overtaken too often.
    private struct Overtaken: Error {}

    /// The number of requests that have returned.
    private final class Begun: Sendable {
        let count = Mutex(0)
    }

    /// Runs `body` with the client of a vault on two nodes of one database.
    private static func onTwoNodes(
        _ body: @Sendable (TestApplication, TestApplication) async throws -> Void
    ) async throws {
        try await TestApplication.with(connections: 2) { first in
            try await TestApplication.with(first.configuration, first.database, clock: first.clock, connections: 2) {
                second in
                try await body(first, second)
            }
        }
    }

    /// A write of an item.
    private struct Write {
        /// True if its change had returned before the write began.
        let isLate: Bool
        /// The revision of an accepted write.
        let revision: Int?
        let status: Int
    }

    /// Lets members write on two nodes, and runs a change after the first writes.
    ///
    /// - Parameter tokens: The sessions of the writers.
    private static func write(
        as tokens: [String?], _ nodes: [TestApplication], _ vault: VaultScene, writersOfEach: Int = 12,
        change: @Sendable @escaping () async throws -> Void
    ) async throws -> [Write] {
        let (begun, hasChanged) = (Begun(), Begun())
        let (root, item) = (vault.path, vault.item())
        let fields = vault.fields(["If-None-Match": "*"])
        return try await withThrowingTaskGroup(of: [Write].self) { group in
            for (index, token) in tokens.enumerated() {
                for writer in 0..<writersOfEach {
                    let client = nodes[(index + writer) % nodes.count].client.with(token: token)
                    group.addTask {
                        var writes: [Write] = []
                        // Until the change is behind it, so that the writes meet it.
                        while writes.count < writesOfEach || hasChanged.count.withLock({ $0 }) == 0 {
                            let isLate = hasChanged.count.withLock { $0 } > 0
                            let reply = try await client.put("\(root)/items/\(Fixtures.uuid())", item, fields)
                            begun.count.withLock { $0 += 1 }
                            if [429, 503].contains(reply.status) { continue }
                            writes.append(
                                Write(
                                    isLate: isLate, revision: reply.status == 201 ? reply.integer("revision") : nil,
                                    status: reply.status))
                            if reply.status != 201 { break }
                        }
                        return writes
                    }
                }
            }
            group.addTask {
                let count = tokens.count * writersOfEach
                while begun.count.withLock({ $0 }) < count { try await Task.sleep(for: .milliseconds(1)) }
                try await change()
                hasChanged.count.withLock { $0 = 1 }
                return []
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    @Test func `no write of a removed member follows its removal`() async throws {
        try await Self.onTwoNodes { first, second in
            try await first.administer("UPDATE saltern.plans SET vault_items = 100000")
            var vault = try await VaultScene(first)
            var members: [VaultScene.Sharer] = []
            for _ in 0..<4 { members.append(try await vault.join(as: .writer)) }
            let before = vault
            let ids = members.map(\.member)
            let (generation, keys) = try vault.newKeys(without: ids)
            let payload = try #require(EntryPayload.removing(Set(ids), generation))
            let removal = VaultScene.body(try vault.entry(payload), keys)
            let (path, founder) = (vault.path, vault.founder.client)
            let removedAt = Mutex<Int?>(nil)
            let writes = try await Self.write(
                as: members.map(\.client.token), [first, second], before
            ) {
                let reply = try await founder.post("\(path)/log", removal)
                removedAt.withLock { $0 = reply.integer("revision") }
            }
            let limit = try #require(removedAt.withLock { $0 })
            let revisions = writes.compactMap(\.revision)
            #expect(revisions.allSatisfy { $0 < limit })
            #expect(writes.allSatisfy { !$0.isLate || $0.revision == nil })
            let refusals = writes.filter { $0.revision == nil }
            #expect(!refusals.isEmpty)
            #expect(Set(refusals.map(\.status)).isSubset(of: [404, 409]))
            #expect(try await founder.get(path).integer("usage.items") == revisions.count)
        }
    }

    @Test func `no write of a lowered member follows its new role`() async throws {
        try await Self.onTwoNodes { first, second in
            try await first.administer("UPDATE saltern.plans SET vault_items = 100000")
            var vault = try await VaultScene(first)
            let bob = try await vault.join(as: .writer)
            let lowering = VaultScene.body(try vault.entry(.role(bob.member, .reader)))
            let (path, founder) = (vault.path, vault.founder.client)
            let loweredAt = Mutex<Int?>(nil)
            let writes = try await Self.write(as: [bob.client.token], [first, second], vault) {
                let reply = try await founder.post("\(path)/log", lowering)
                loweredAt.withLock { $0 = reply.integer("revision") }
            }
            let limit = try #require(loweredAt.withLock { $0 })
            #expect(writes.compactMap(\.revision).allSatisfy { $0 < limit })
            let refusals = writes.filter { $0.revision == nil }
            #expect(!refusals.isEmpty)
            #expect(Set(refusals.map(\.status)).isSubset(of: [403, 409]))
        }
    }

    @Test func `a join counts before a revocation, or not at all`() async throws {
        try await Self.onTwoNodes { first, second in
            for _ in 0..<4 {
                var vault = try await VaultScene(first)
                let secrets = try await vault.invite(as: .writer)
                let joiner = try VaultScene.Sharer(try await first.register())
                let body = try vault.joining(secrets, joiner).body
                let revocation = VaultScene.body(try vault.entry(.revoke(secrets.id)))
                let (path, founder) = (vault.path, vault.founder.client)
                async let joining = second.client.with(token: joiner.client.token)
                    .post("/v1/invitations/\(secrets.id.text)/acceptance", body)
                let revoked = try await founder.post("\(path)/log", revocation)
                let joined = try await joining
                // One of the two entries stands at the number.
                #expect([200, 409].contains(revoked.status), "\(revoked)")
                #expect((joined.status == 201) == (revoked.status == 409), "\(joined) \(revoked)")
                let isClosed = joined.string("reason") == "closedInvitation"
                #expect([201, 404, 409].contains(joined.status) || isClosed, "\(joined)")
                let isMember = try await joiner.client.get(path).status == 200
                #expect(isMember == (joined.status == 201))
            }
        }
    }

    @Test func `no write of a session follows its end`() async throws {
        try await Self.onTwoNodes { first, second in
            try await first.administer("UPDATE saltern.plans SET vault_items = 100000")
            var vault = try await VaultScene(first)
            let bob = try await vault.join(as: .writer)
            let session = try await first.logIn(bob.account)
            let ending = bob.client
            let writes = try await Self.write(as: [session.token], [first, second], vault) {
                let ended = try await ending.delete("/v1/sessions")
                #expect(ended.status == 200 || ended.status == 204)
            }
            #expect(writes.allSatisfy { !$0.isLate || $0.status == 401 })
            let refusals = writes.filter { $0.revision == nil }
            #expect(!refusals.isEmpty)
            #expect(Set(refusals.map(\.status)).isSubset(of: [401]))
        }
    }

    @Test func `of two managers that remove each other one stays`() async throws {
        try await Self.onTwoNodes { first, second in
            for _ in 0..<4 {
                var vault = try await VaultScene(first)
                let managers = [try await vault.join(as: .manager), try await vault.join(as: .manager)]
                let requests = try managers.indices.map { index in
                    var copy = vault
                    let other = managers[1 - index]
                    let (generation, keys) = try copy.newKeys(without: [other.member])
                    return VaultScene.body(
                        try copy.entry(.remove(generation, [other.member]), by: managers[index]), keys)
                }
                let path = vault.path
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for (index, node) in [first, second].enumerated() {
                        let client = node.client.with(token: managers[index].client.token)
                        let body = requests[index]
                        group.addTask { try await client.post("\(path)/log", body).status }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(statuses.filter { $0 == 200 }.count == 1, "\(statuses)")
                #expect(statuses.allSatisfy { [200, 404, 409].contains($0) }, "\(statuses)")
            }
        }
    }

    @Test(arguments: [1, 3]) func `the last use of an invitation is used once`(uses: Int) async throws {
        try await Self.onTwoNodes { first, second in
            var vault = try await VaultScene(first)
            let secrets = try await vault.invite(as: .writer, uses: UInt16(uses))
            let founder = vault.founder.client
            let scene = SharedValue(vault)
            let path = "/v1/invitations/\(secrets.id.text)/acceptance"
            var joiners: [VaultScene.Sharer] = []
            for _ in 0..<6 { joiners.append(try VaultScene.Sharer(try await first.register())) }
            let results = try await withThrowingTaskGroup(of: TestResponse.self) { group in
                for (index, joiner) in joiners.enumerated() {
                    let client = [first, second][index % 2].client.with(token: joiner.client.token)
                    group.addTask {
                        for _ in 0..<500 {
                            let (entry, body) = try scene.withLock { try $0.joining(secrets, joiner) }
                            let reply = try await client.post(path, body)
                            if reply.status == 201 { try scene.withLock { try $0.note(entry) } }
                            // Others were faster: the entry is made again behind theirs.
                            if [409, 429, 503].contains(reply.status) {
                                try await Task.sleep(for: .milliseconds(2))
                                continue
                            }
                            return reply
                        }
                        throw Overtaken()
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.filter { $0.status == 201 }.count == uses)
            for refused in results.filter({ $0.status != 201 }) {
                #expect(refused.string("reason") == "closedInvitation", "\(refused)")
            }
            #expect(try await founder.get(vault.path).array("members")?.count == 1 + uses)
        }
    }

    @Test func `an owner is deleted with its vaults, or joined before`() async throws {
        try await Self.onTwoNodes { first, second in
            for round in 0..<6 {
                var vault = try await VaultScene(first)
                let secrets = try await vault.invite(as: .writer, uses: 4)
                let joiner = try VaultScene.Sharer(try await first.register())
                let body = try vault.joining(secrets, joiner).body
                let founder = vault.founder
                let key = JSONValue.string(founder.account.passwordKey)
                let refused = try await founder.client.send(
                    .delete, "/v1/account", body: TestClient.document(["currentPasswordKey": key]))
                #expect(refused.status == 409)
                #expect(refused.string("code") == "owns_vaults")
                let path = "/v1/invitations/\(secrets.id.text)/acceptance"
                async let joining: TestResponse = {
                    // The deletion first checks a secret: the rounds meet it at different places.
                    try await Task.sleep(for: .milliseconds(round * 3))
                    return try await second.client.with(token: joiner.client.token).post(path, body)
                }()
                let deleted = try await founder.client.send(
                    .delete, "/v1/account", body: TestClient.document(["currentPasswordKey": key, "vaults": "delete"]))
                #expect(deleted.status == 204, "\(deleted)")
                let joined = try await joining
                // The log can still have the invitation when its inviter is gone.
                let isClosed = joined.status == 422 && joined.string("reason") == "closedInvitation"
                #expect([201, 404].contains(joined.status) || isClosed, "\(joined)")
                #expect(try await joiner.client.get(vault.path).status == 404)
                #expect(try await joiner.client.get("/v1/vaults").array("vaults")?.isEmpty == true)
            }
            for table in ["vaults", "vault_members", "vault_entries", "vault_invitations"] {
                try await first.administer(
                    """
                    DO $$ BEGIN IF EXISTS (SELECT FROM saltern.\(table)) THEN RAISE 'rows in \(table)'; END IF; END $$
                    """)
            }
        }
    }
}
