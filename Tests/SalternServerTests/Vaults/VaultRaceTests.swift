import Cryptography
import HTTPCore
import SalternTesting
import Synchronization
import Testing
import VaultLog

/// Changes of a vault's members against writes, on two nodes.
@Suite struct VaultRaceTests {
    private static let writesOfEach = 20

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

    /// Lets a member write on two nodes until a write is refused or all are done.
    ///
    /// - Returns: The revisions of accepted writes, and the statuses of refused ones.
    private static func write(
        as token: String?, _ nodes: [TestApplication], _ vault: VaultScene, writers: Int = 40,
        whenBegun: @Sendable @escaping () async throws -> Void
    ) async throws -> (revisions: [Int], refusals: Set<Int>) {
        let begun = Begun()
        let (root, item) = (vault.path, vault.item())
        let fields = vault.fields(["If-None-Match": "*"])
        return try await withThrowingTaskGroup(of: (revisions: [Int], refusal: Int?).self) { group in
            for writer in 0..<writers {
                let client = nodes[writer % nodes.count].client.with(token: token)
                group.addTask {
                    var revisions: [Int] = []
                    for _ in 0..<writesOfEach {
                        let reply = try await client.put(
                            "\(root)/items/\(Fixtures.uuid())", item, fields)
                        begun.count.withLock { $0 += 1 }
                        guard reply.status == 201, let revision = reply.integer("revision") else {
                            return (revisions, reply.status)
                        }
                        revisions.append(revision)
                    }
                    return (revisions, nil)
                }
            }
            group.addTask {
                while begun.count.withLock({ $0 }) < writers { try await Task.sleep(for: .milliseconds(1)) }
                try await whenBegun()
                return ([], nil)
            }
            return try await group.reduce(into: ([], [])) { all, one in
                all.revisions += one.revisions
                if let refusal = one.refusal { all.refusals.insert(refusal) }
            }
        }
    }

    @Test func `no write of a removed member follows its removal`() async throws {
        try await Self.onTwoNodes { first, second in
            var vault = try await VaultScene(first)
            let bob = try await vault.join(as: .writer)
            let before = vault
            let (generation, keys) = try vault.newKeys(without: [bob.member])
            let removal = try vault.entry(.remove(generation, [bob.member]))
            let (path, founder) = (vault.path, vault.founder.client)
            let removedAt = Mutex<Int?>(nil)
            let (revisions, refusals) = try await Self.write(
                as: bob.client.token, [first, second], before, writers: 200
            ) {
                let reply = try await founder.post("\(path)/log", VaultScene.body(removal, keys))
                removedAt.withLock { $0 = reply.integer("revision") }
            }
            let limit = try #require(removedAt.withLock { $0 })
            #expect(revisions.allSatisfy { $0 < limit })
            #expect(refusals.isSubset(of: [404, 409]))
            #expect(try await founder.get(path).integer("usage.items") == revisions.count)
        }
    }

    @Test func `no write of a lowered member follows its new role`() async throws {
        try await Self.onTwoNodes { first, second in
            var vault = try await VaultScene(first)
            let bob = try await vault.join(as: .writer)
            let lowering = try vault.entry(.role(bob.member, .reader))
            let (path, founder) = (vault.path, vault.founder.client)
            let loweredAt = Mutex<Int?>(nil)
            let (revisions, refusals) = try await Self.write(
                as: bob.client.token, [first, second], vault
            ) {
                let reply = try await founder.post("\(path)/log", VaultScene.body(lowering))
                loweredAt.withLock { $0 = reply.integer("revision") }
            }
            let limit = try #require(loweredAt.withLock { $0 })
            #expect(revisions.allSatisfy { $0 < limit })
            #expect(refusals.isSubset(of: [403, 409]))
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
                #expect([201, 404, 409].contains(joined.status), "\(joined)")
                let isMember = try await joiner.client.get(path).status == 200
                #expect(isMember == (joined.status == 201))
            }
        }
    }

    @Test func `no write of a session follows its end`() async throws {
        try await Self.onTwoNodes { first, second in
            var vault = try await VaultScene(first)
            let bob = try await vault.join(as: .writer)
            let session = try await first.logIn(bob.account)
            let (path, founder, ending) = (vault.path, vault.founder.client, bob.client)
            let endedAt = Mutex<Int?>(nil)
            let (revisions, refusals) = try await Self.write(as: session.token, [first, second], vault) {
                let ended = try await ending.delete("/v1/sessions")
                #expect(ended.status == 200 || ended.status == 204)
                let revision = try await founder.get(path).integer("revision")
                endedAt.withLock { $0 = revision }
            }
            let limit = try #require(endedAt.withLock { $0 })
            #expect(revisions.allSatisfy { $0 <= limit })
            #expect(refusals.isSubset(of: [401]))
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

    @Test func `the last use of an invitation is used once`() async throws {
        try await Self.onTwoNodes { first, second in
            var vault = try await VaultScene(first)
            let secrets = try await vault.invite(as: .writer, uses: 1)
            var joiners: [(TestClient, JSONValue)] = []
            for index in 0..<6 {
                let joiner = try VaultScene.Sharer(try await first.register())
                let client = [first, second][index % 2].client.with(token: joiner.client.token)
                joiners.append((client, try vault.joining(secrets, joiner).body))
            }
            let path = "/v1/invitations/\(secrets.id.text)/acceptance"
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for (client, body) in joiners { group.addTask { try await client.post(path, body).status } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.filter { $0 == 201 }.count == 1, "\(statuses)")
            #expect(try await vault.founder.client.get(vault.path).array("members")?.count == 2)
        }
    }

    @Test func `an owner is deleted with its vaults, or joined before`() async throws {
        try await Self.onTwoNodes { first, second in
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
            async let joining = second.client.with(token: joiner.client.token).post(path, body)
            let deleted = try await founder.client.send(
                .delete, "/v1/account", body: TestClient.document(["currentPasswordKey": key, "vaults": "delete"]))
            #expect(deleted.status == 204, "\(deleted)")
            #expect([201, 404].contains(try await joining.status))
            #expect(try await joiner.client.get(vault.path).status == 404)
            #expect(try await joiner.client.get("/v1/vaults").array("vaults")?.isEmpty == true)
        }
    }
}
