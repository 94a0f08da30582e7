import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing
import VaultLog

@testable import Postgres
@testable import SalternServer

/// The admission of requests to a vault's queues, and logs in memory.
@Suite struct VaultDoorTests {
    private final class Flag: Sendable {
        private let value = Mutex(false)
        var isSet: Bool { value.withLock(\.self) }
        func set() { value.withLock { $0 = true } }
    }

    private struct LockVaults: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = "SELECT FROM saltern.vaults FOR UPDATE"
    }

    private struct LockAccounts: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = "SELECT FROM saltern.accounts FOR UPDATE"
    }

    private struct LockItems: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = "SELECT FROM saltern.vault_items FOR UPDATE"
    }

    private static func hold(
        _ lock: some Statement, _ app: TestApplication, _ body: @Sendable () async throws -> Void
    ) async throws {
        let (isHeld, mayEnd) = (Flag(), Flag())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await HeldRow.hold(lock, in: app) { _ in
                    isHeld.set()
                    try await eventually { mayEnd.isSet }
                }
            }
            try await eventually { isHeld.isSet }
            do { try await body() } catch {
                mayEnd.set()
                throw error
            }
            mayEnd.set()
            try await group.waitForAll()
        }
    }

    @Test func `requests of others than members do not wait for a vault`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let (generation, keys) = try vault.newKeys(without: [bob.member])
            // Its own entry of before, and its session, are known.
            #expect(try await vault.append(.remove(generation, [bob.member]), keys).status == 200)
            let stranger = try await app.register()
            let (fields, present) = (vault.fields(["If-None-Match": "*"]), vault.fields(["If-Match": "*"]))
            let (path, item, head) = (vault.path, vault.item(), vault.log.head)
            try await Self.hold(LockVaults(), app) {
                for client in [bob.client, stranger.client] {
                    let statuses = try await [
                        client.put("\(path)/items/\(Fixtures.uuid())", item, fields).status,
                        client.delete("\(path)/items/\(Fixtures.uuid())", present).status,
                        client.delete("\(path)/boxes/mine").status, client.delete(path).status,
                        client.post("\(path)/recovered", ["head": .object(JSONObject(VaultScene.members(of: head)))])
                            .status,
                    ]
                    #expect(statuses == [404, 404, 404, 404, 404])
                }
            }
        }
    }

    @Test func `to others than members a vault answers on all routes as one that does not exist`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .manager)
            let id = Fixtures.uuid()
            #expect(
                try await bob.client.put(
                    "\(vault.path)/items/\(id)", vault.item(), vault.fields(["If-None-Match": "*"])
                ).status == 201)
            let (generation, keys) = try vault.newKeys(without: [bob.member])
            #expect(try await vault.append(.remove(generation, [bob.member]), keys).status == 200)
            let stranger = try await app.register()
            let (item, fields) = (vault.item(), vault.fields(["If-Match": "*"]))
            var count = 0
            for route in app.routes where route.template.description.hasPrefix("/v1/vaults/{vault}") {
                count += 1
                let name = route.metadata.name
                let body =
                    name.hasSuffix("/items/{id}")
                    ? item
                    : name.hasSuffix("batch") ? ["operations": [BatchTests.delete(id)]] : RouteBodies.body(for: name)
                for client in [bob.client, stranger.client] {
                    var replies: [TestResponse] = []
                    for vaultID in [vault.log.vault.text, Fixtures.uuid()] {
                        let path = route.template.description.replacing("{vault}", with: vaultID)
                        replies.append(
                            try await client.send(
                                route.method, RouteBodies.path(path, id: id),
                                fields: fields.merging(["Content-Type": "application/json"]) { $1 },
                                body: route.body == .none ? nil : TestClient.document(body)))
                    }
                    #expect((400..<500).contains(replies[0].status), "\(name): \(replies[0])")
                    #expect(replies[0].status == replies[1].status, "\(name)")
                    #expect(replies[0].code == replies[1].code, "\(name)")
                }
            }
            #expect(count > 20)
        }
    }

    @Test func `a member with many requests leaves room for others, and for the log`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let (generation, keys) = try vault.newKeys(without: [bob.member])
            let removal = VaultScene.body(try vault.entry(.remove(generation, [bob.member])), keys)
            let fields = vault.fields(["If-None-Match": "*"])
            let (path, item, founder) = (vault.path, vault.item(), vault.founder.client)
            let (isHeld, mayEnd) = (Flag(), Flag())
            let statuses = SharedValue<[Int]>([])
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await HeldRow.hold(LockVaults(), in: app) { _ in
                        isHeld.set()
                        try await eventually { mayEnd.isSet }
                    }
                }
                try await eventually { isHeld.isSet }
                // Of 40 requests of one member 16 wait.
                for _ in 0..<40 {
                    group.addTask {
                        let reply = try await bob.client.put("\(path)/items/\(Fixtures.uuid())", item, fields)
                        statuses.withLock { $0.append(reply.status) }
                    }
                }
                try await eventually { statuses.withLock { $0.count } >= 24 }
                #expect(statuses.withLock { $0.filter { $0 == 429 }.count } == 24)
                mayEnd.set()
                #expect(try await founder.post("\(path)/log", removal).status == 200)
                try await group.waitForAll()
            }
        }
    }

    @Test func `a member's write precedes the queued writes of another member`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let fields = vault.fields(["If-None-Match": "*"])
            let (path, item, founder) = (vault.path, vault.item(), vault.founder.client)
            @Sendable func write(_ client: TestClient) async throws -> Int? {
                try await client.put("\(path)/items/\(Fixtures.uuid())", item, fields).integer("revision")
            }
            // The node knows both as members.
            for client in [founder, bob.client] { _ = try await write(client) }
            let revisions = SharedValue<[Int]>([])
            var own: Int?
            let (isHeld, mayEnd) = (Flag(), Flag())
            try await withThrowingTaskGroup(of: Int?.self) { group in
                group.addTask {
                    try await HeldRow.hold(LockVaults(), in: app) { _ in
                        isHeld.set()
                        try await eventually { mayEnd.isSet }
                    }
                    return nil
                }
                try await eventually { isHeld.isSet }
                for _ in 0..<16 {
                    group.addTask {
                        let revision = try #require(try await write(bob.client))
                        revisions.withLock { $0.append(revision) }
                        return nil
                    }
                }
                try await eventually { app.postgres.keys.keyWaits.waiting == 15 }
                group.addTask { try await write(founder) }
                try await eventually { app.postgres.keys.keyWaits.waiting == 16 }
                mayEnd.set()
                for try await case let revision? in group { own = revision }
            }
            let founders = try #require(own)
            #expect(revisions.withLock { $0.filter { $0 < founders }.count } == 1, "only the write that holds the key")
        }
    }

    @Test func `a member whose account is locked keeps no other member waiting`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .writer)
            let fields = vault.fields(["If-None-Match": "*"])
            let signer = try MemberSigner(bob.member, of: vault.log.vault, bob.keys)
            let seen = VaultScene.body(
                vault.log.head, try MemberStatement(.seen, by: signer, vault.log.head).signature)
            let role = VaultScene.body(try vault.entry(.role(bob.member, .reader)))
            let (path, item, founder) = (vault.path, vault.item(), vault.founder.client)
            @Sendable func put(_ client: TestClient) async throws -> Int {
                try await client.put("\(path)/items/\(Fixtures.uuid())", item, fields).status
            }
            #expect(try await put(bob.client) == 201)
            let statuses = SharedValue<[Int]>([])
            try await HeldRow.account(bob.account, in: app) { _ in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for index in 0..<12 {
                        group.addTask {
                            let status =
                                index < 4
                                ? try await bob.client.put("\(path)/seen", seen).status : try await put(bob.client)
                            statuses.withLock { $0.append(status) }
                        }
                    }
                    try await Task.sleep(for: .milliseconds(200))
                    for _ in 0..<3 { #expect(try await put(founder) == 201) }
                    #expect(try await founder.post("\(path)/log", role).status == 200)
                    try await group.waitForAll()
                }
            }
            #expect(statuses.withLock { $0 } == [Int](repeating: 429, count: 12))
        }
    }

    @Test func `a vault's deletion does not outlive its session`() async throws {
        try await TestApplication.with { app in
            let vault = try await VaultScene(app)
            let (path, founder) = (vault.path, vault.founder.client)
            let item = "\(path)/items/\(Fixtures.uuid())"
            #expect(try await founder.put(item, vault.item(), vault.fields(["If-None-Match": "*"])).status == 201)
            let other = try await app.logIn(vault.founder.account)
            let deletion = try await HeldRow.hold(LockItems(), in: app) { held in
                let deletion = Task { try await other.delete(path).status }
                try await held.waiters(1)
                #expect([200, 204].contains(try await founder.delete("/v1/sessions").status))
                return deletion
            }
            #expect(try await deletion.value == 401)
            #expect(try await founder.get(item).status == 200)
            #expect(try await founder.delete(path).status == 204)
        }
    }

    @Test func `a member without a box locks no vault`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .reader)
            let path = "\(vault.path)/boxes/mine"
            try await Self.hold(LockVaults(), app) {
                let reply = try await bob.client.delete(path)
                #expect(reply.status == 204)
            }
        }
    }

    @Test func `an account is deleted while another request deletes its vault`() async throws {
        try await TestApplication.with { app in
            let vault = try await VaultScene(app)
            let (path, founder) = (vault.path, vault.founder.client)
            let body = TestClient.document([
                "currentPasswordKey": .string(vault.founder.account.passwordKey), "vaults": "delete",
            ])
            let (first, second) = try await HeldRow.hold(LockVaults(), in: app) { held in
                let first = Task { try await founder.delete(path).status }
                try await held.waiters(1)
                let second = Task { try await founder.send(.delete, "/v1/account", body: body).status }
                // The second request finds the vault, and queues for it.
                try await Task.sleep(for: .milliseconds(500))
                return (first, second)
            }
            #expect(try await first.value == 204)
            #expect(try await second.value == 204)
        }
    }

    @Test(arguments: [(VaultQueues.Lane.items, 16), (.log, 4)])
    func `a member has few places in a queue`(lane: VaultQueues.Lane, places: Int) async throws {
        let other: VaultQueues.Lane = lane == .log ? .items : .log
        let queues = VaultQueues()
        let (account, vault) = (AccountID(UUID.random()), SalternServer.VaultID(UUID.random()))
        let mayEnd = Flag()
        let started = SharedValue(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<places {
                group.addTask {
                    try await queues.run(account, vault, lane) {
                        started.withLock { $0 += 1 }
                        try await eventually { mayEnd.isSet }
                    }
                }
            }
            try await eventually { started.withLock { $0 } == places }
            await #expect(throws: PostgresError.self) { try await queues.run(account, vault, lane) {} }
            try await queues.run(account, vault, other) {}
            try await queues.run(AccountID(UUID.random()), vault, lane) {}
            try await queues.run(account, SalternServer.VaultID(UUID.random()), lane) {}
            mayEnd.set()
            try await group.waitForAll()
        }
        try await queues.run(account, vault, lane) {}
    }

    @Test func `the share of a member shrinks while a queue fills`() async throws {
        let (vault, queues) = (SalternServer.VaultID(UUID.random()), VaultQueues())
        let mayEnd = Flag()
        let started = SharedValue(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for account in (0..<5).map({ _ in AccountID(UUID.random()) }) {
                for _ in 0..<16 {
                    group.addTask {
                        do {
                            try await queues.run(account, vault, .items) {
                                started.withLock { $0 += 1 }
                                try await eventually { mayEnd.isSet }
                            }
                        } catch is PostgresError {}
                    }
                }
            }
            try await eventually { started.withLock { $0 } >= 32 }
            // At most 47 places are of five accounts, and others find one each.
            for _ in 0..<16 {
                group.addTask {
                    try await queues.run(AccountID(UUID.random()), vault, .items) {
                        try await eventually { mayEnd.isSet }
                    }
                }
            }
            try await queues.run(AccountID(UUID.random()), vault, .items) {}
            #expect(started.withLock { $0 } < 48)
            mayEnd.set()
            try await group.waitForAll()
        }
    }

    @Test func `a reader's changes of items do not wait for a vault`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .reader)
            let fields = vault.fields(["If-None-Match": "*"])
            let (path, item) = ("\(vault.path)/items/\(Fixtures.uuid())", vault.item())
            try await Self.hold(LockVaults(), app) {
                for _ in 0..<2 {
                    let reply = try await bob.client.put(path, item, fields)
                    #expect(reply.code == "role_too_low")
                }
            }
            // A new role counts at once.
            #expect(try await vault.append(.role(bob.member, .writer)).status == 200)
            let present = vault.fields(["If-None-Match": "*"])
            #expect(try await bob.client.put(path, item, present).status == 201)
        }
    }

    @Test func `a member without an offer locks no other account`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let bob = try await vault.join(as: .manager)
            let carol = try await vault.join(as: .manager)
            #expect(try await vault.append(.offer(carol.member)).status == 200)
            let accept = VaultScene.body(try vault.entry(.accept(vault.log.head.number), by: bob))
            let path = vault.path
            try await Self.hold(LockAccounts(), app) {
                let reply = try await bob.client.post("\(path)/owner", accept)
                #expect(reply.status == 422)
                #expect(reply.string("reason") == "noOffer")
            }
        }
    }

    @Test func `links of a locked or deleted inviter open nothing`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let manager = try await vault.join(as: .manager)
            let secrets = try await vault.invite(as: .reader, uses: 3, by: manager)
            let token = secrets.token.withUnsafeBytes { "slv_" + Base64URL.encodeToString([UInt8]($0)) }
            let path = "/v1/invitations/\(secrets.id.text)"
            func opening() async throws -> Int { try await app.client.with(token: token).get(path).status }
            #expect(try await opening() == 200)

            let userid = manager.account.userid
            let signature = InviteTests.signature(app)
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.lock(.userid(userid), by: signature)
            }
            #expect(try await opening() == 404)
            let bob = try VaultScene.Sharer(try await app.register())
            let refused = try await bob.client.post("\(path)/acceptance", try vault.joining(secrets, bob).body)
            #expect(refused.status == 422)
            #expect(refused.string("reason") == "closedInvitation")

            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.unlock(.userid(userid), by: signature)
            }
            #expect(try await opening() == 200)
            let (entry, body) = try vault.joining(secrets, bob)
            #expect(try await bob.client.post("\(path)/acceptance", body).status == 201)
            try vault.note(entry)

            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.delete(.userid(userid), by: signature)
            }
            #expect(try await opening() == 404)
            let eve = try VaultScene.Sharer(try await app.register())
            let late = try await eve.client.post("\(path)/acceptance", try vault.joining(secrets, eve).body)
            #expect(late.string("reason") == "closedInvitation")
            // A repetition after a lost reply.
            #expect(try await bob.client.post("\(path)/acceptance", body).status == 200)
        }
    }

    @Test func `a link opens nothing if its inviter is locked while the join waits for the vault`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let manager = try await vault.join(as: .manager)
            let secrets = try await vault.invite(as: .reader, by: manager)
            let bob = try VaultScene.Sharer(try await app.register())
            let body = try vault.joining(secrets, bob).body
            let path = "/v1/invitations/\(secrets.id.text)/acceptance"
            let signature = InviteTests.signature(app)
            let reason = try await HeldRow.hold(LockVaults(), in: app) { held in
                let reason = Task { try await bob.client.post(path, body).string("reason") }
                try await held.waiters(1)
                _ = try await AccountAdministrationTests.administer(app) {
                    try await $0.lock(.userid(manager.account.userid), by: signature)
                }
                return reason
            }
            #expect(try await reason.value == "closedInvitation")
            #expect(try await bob.client.get(vault.path).status == 404)
        }
    }

    @Test func `an account with many rejected requests about logs waits`() async throws {
        try await TestApplication.with { app in
            let vault = try await VaultScene(app)
            let wrong = VaultScene.body(try vault.entry(.offer(nil)))
            var codes: Set<String> = []
            // A token comes back each second.
            for _ in 0..<2_000 where !codes.contains("too_many_entries") {
                let reply = try await vault.founder.client.post("\(vault.path)/log", wrong)
                codes.insert(reply.code ?? "")
            }
            #expect(codes == ["entry_refused", "too_many_entries"])
            // Items go on.
            let written = try await vault.founder.client.put(
                "\(vault.path)/items/\(Fixtures.uuid())", vault.item(), vault.fields(["If-None-Match": "*"]))
            #expect(written.status == 201)
        }
    }

    // MARK: Logs in memory

    /// A log of so many entries, with its entries.
    private static func log(_ count: Int) throws -> (log: MembershipLog, entries: [Entry]) {
        let keys = try MemberPrivateKeys.generate()
        let member = VaultLog.MemberID.random()
        let time = try #require(EntryTime(seconds: 1_800_000_000))
        let founding = try EntryWriter.found(
            by: member, named: try #require(MemberName("Ada")), keys, .random(), at: time)
        var (log, entries) = (try MembershipLog(founding: founding), [founding])
        for _ in 1..<count {
            let key = GenerationKey.random(for: log)
            let number = try #require(log.currentGeneration.number.next)
            let entry = try EntryWriter.entry(
                .rotate(Generation(key, number: number)), by: try MemberSigner(member, of: log.vault, keys), after: log,
                at: time)
            try log.append(entry)
            entries.append(entry)
        }
        return (log, entries)
    }

    private static func head(_ log: MembershipLog) -> StoredHead {
        StoredHead(number: Int64(log.head.number.value), hash: log.head.hash.bytes)
    }

    @Test func `a known log reads only the entries behind it`() async throws {
        let (log, entries) = try Self.log(80)
        let (vault, cache) = (SalternServer.VaultID(log.vault.bytes), LogCache())
        let reads = Mutex<[Int64]>([])
        func read(_ end: Int, of entries: [Entry]) async throws -> MembershipLog {
            let head = StoredHead(number: Int64(end), hash: entries[end - 1].hash.bytes)
            return try await cache.read(vault, upTo: head, pace: .yielding) { find in
                reads.withLock { $0.append(find.after) }
                return entries.dropFirst(Int(find.after)).prefix(Int(find.limit)).map(\.bytes)
            }
        }
        #expect(try await read(78, of: entries).head.number.value == 78)
        #expect(reads.withLock { $0 } == [0])
        #expect(try await read(80, of: entries).head == log.head)
        #expect(try await read(80, of: entries).head == log.head)
        #expect(reads.withLock { $0 } == [0, 78])
        // A restore: the log ends before, and goes on otherwise.
        #expect(try await read(70, of: entries).head == entries[69].head)
        let (other, others) = try Self.log(72)
        _ = other
        await #expect(throws: Problem.self) { _ = try await read(72, of: Array(entries.prefix(70)) + others.suffix(2)) }
    }

    @Test func `logs in memory have a bound in bytes`() async throws {
        let (log, _) = try Self.log(10)
        let cache = LogCache(limit: 40_000)
        var vaults: [SalternServer.VaultID] = []
        for _ in 0..<20 {
            let vault = SalternServer.VaultID(UUID.random())
            cache.insert(log, of: vault)
            vaults.append(vault)
            _ = cache.log(of: vaults[0])
            #expect(cache.size <= 40_000)
        }
        // The first is used all the time.
        #expect(cache.log(of: vaults[0]) != nil)
        #expect(cache.log(of: vaults[1]) == nil)
        #expect(cache.log(of: vaults[19]) != nil)
        let small = LogCache(limit: 100)
        small.insert(log, of: vaults[0])
        #expect(small.size == 0)
    }
}
