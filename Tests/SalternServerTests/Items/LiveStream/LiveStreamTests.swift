import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

// Whoever waits for an event that does not come waits no longer than this.
@Suite(.timeLimit(.minutes(60))) struct LiveStreamTests {
    private static let path = "/v1/changes/stream"

    private static func event(_ revision: Int) -> String {
        "id: \(revision)\nevent: change\ndata: {\"revision\":\(revision)}\n\n"
    }

    /// The next event; comments that keep the stream alive are passed over.
    private static func nextEvent(_ stream: TestStream) async -> String? {
        while let text = await stream.next() {
            if !text.hasPrefix(":") { return text }
        }
        return nil
    }

    /// Reads the first piece, which tells when to come back.
    private static func open(_ client: TestClient, _ fields: [String: String] = [:]) async throws -> TestStream {
        let stream = await client.stream(path, fields)
        #expect(stream.response.status == 200)
        #expect(stream.response.fields["Content-Type"] == "text/event-stream")
        #expect(stream.response.fields["Cache-Control"] == "no-store, no-transform")
        #expect(stream.response.fields["X-Accel-Buffering"] == "no")
        let retry = try #require(await stream.next())
        let delay = try #require(retry.wholeMatch(of: /retry: (\d+)\n\n/)?.1)
        #expect((1_000...5_000).contains(Int(delay) ?? 0))
        return stream
    }

    @Test func `a stream tells the revision at once and then whenever it moves`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let stream = try await Self.open(ada.client)
            #expect(await Self.nextEvent(stream) == Self.event(0))
            let path = try await ada.createItem()
            #expect(await Self.nextEvent(stream) == Self.event(1))
            #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 200)
            #expect(await Self.nextEvent(stream) == Self.event(2))
            await stream.close()
        }
    }

    /// The next event about a vault; those of the account are passed over.
    private static func nextVaultEvent(_ stream: TestStream) async -> String? {
        while let text = await nextEvent(stream) {
            if text.hasPrefix("event: vault") { return text }
        }
        return nil
    }

    /// The event with a vault's present position.
    private static func vaultEvent(_ client: TestClient, _ path: String) async throws -> String {
        let vault = try await client.get(path)
        let (id, hash) = (try #require(vault.string("id")), try #require(vault.string("head.hash")))
        let (revision, number) = (try #require(vault.integer("revision")), try #require(vault.integer("head.number")))
        return "event: vault\ndata: {\"id\":\"\(id)\",\"revision\":\(revision),\"head\":{\"number\":\(number),"
            + "\"hash\":\"\(hash)\"}}\n\n"
    }

    @Test func `a stream tells of the account's vaults until the membership ends`() async throws {
        try await TestApplication.with { app in
            var scene = try await VaultScene(app)
            let bob = try await scene.join(as: .writer)
            let stream = try await Self.open(bob.client)
            #expect(await Self.nextVaultEvent(stream) == (try await Self.vaultEvent(bob.client, scene.path)))
            let stored = try await scene.founder.client.put(
                "\(scene.path)/items/\(Fixtures.uuid())", scene.item(),
                ["If-None-Match": "*", "Vault-Head": "\(scene.log.head.number.value)"])
            try #require(stored.status == 201, "\(stored)")
            #expect(await Self.nextVaultEvent(stream) == (try await Self.vaultEvent(bob.client, scene.path)))
            // A second stream of the account begins with what the node knows already.
            let second = try await Self.open(bob.client)
            #expect(await Self.nextVaultEvent(second) == (try await Self.vaultEvent(bob.client, scene.path)))

            let (generation, keys) = try scene.newKeys(without: [bob.member])
            try #require(try await scene.append(.remove(generation, [bob.member]), keys).status == 200)
            let ended = "event: vault\ndata: {\"id\":\"\(scene.log.vault.text)\",\"ended\":true}\n\n"
            for stream in [stream, second] { #expect(await Self.nextVaultEvent(stream) == ended) }
            // Whatever happens in the vault is told to nobody who is not in it: the next event is the account's own.
            try #require(
                try await scene.founder.client.put(
                    "\(scene.path)/items/\(Fixtures.uuid())", scene.item(),
                    ["If-None-Match": "*", "Vault-Head": "\(scene.log.head.number.value)"]
                ).status == 201)
            _ = try await bob.account.createItem()
            for stream in [stream, second] {
                let event = await Self.nextEvent(stream)
                #expect(event?.contains("event: change") == true, "\(event ?? "")")
                await stream.close()
            }
        }
    }

    @Test func `an open stream learns of a vault that the account founds or joins`() async throws {
        try await TestApplication.with { app in
            var scene = try await VaultScene(app)
            let eve = try await app.register()
            let stream = try await Self.open(eve.client)
            #expect(await Self.nextEvent(stream) == Self.event(0))
            let own = try await VaultScene(app, eve)
            #expect(await Self.nextVaultEvent(stream) == (try await Self.vaultEvent(eve.client, own.path)))
            let joined = try await scene.join(as: .reader, with: eve)
            let event = await Self.nextVaultEvent(stream)
            #expect(event == (try await Self.vaultEvent(joined.client, scene.path)))
            #expect(try await eve.client.delete(own.path).status == 204)
            #expect(
                await Self.nextVaultEvent(stream)
                    == "event: vault\ndata: {\"id\":\"\(own.log.vault.text)\",\"ended\":true}\n\n")
            await stream.close()
        }
    }

    @Test func `a change made through one node reaches a device at another, four times a second`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await TestApplication.with(TestApplication.configuration, app.database, clock: app.clock) { other in
                let stream = try await Self.open(other.client.with(token: ada.client.token))
                #expect(await Self.nextEvent(stream) == Self.event(0))
                // How long it takes besides is a row of `scripts/bench --only stream`.
                #expect(other.revisions.interval == .milliseconds(250))
                for revision in 1...3 {
                    _ = try await ada.createItem()
                    #expect(await Self.nextEvent(stream) == Self.event(revision))
                }
                await stream.close()
            }
        }
    }

    @Test func `a client that comes back is told only what it does not know`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.createItem()
            let behind = try await Self.open(ada.client, ["Last-Event-ID": "0"])
            #expect(await behind.next() == Self.event(1))
            let current = try await Self.open(ada.client, ["Last-Event-ID": "1"])
            // The first that comes is a sign of life.
            #expect(await current.next() == ": keep-alive\n\n")
            _ = try await ada.createItem()
            #expect(await Self.nextEvent(current) == Self.event(2))
            #expect(await Self.nextEvent(behind) == Self.event(2))
            let restored = try await Self.open(ada.client, ["Last-Event-ID": "99"])
            #expect(await restored.next() == Self.event(2))
            for stream in [behind, current, restored] { await stream.close() }
        }
    }

    @Test func `an empty Last-Event-ID is that of a client that has heard of no event`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.createItem()
            let stream = try await Self.open(ada.client, ["Last-Event-ID": ""])
            #expect(await stream.next() == Self.event(1))
            await stream.close()
        }
    }

    @Test(arguments: ["-1", "1.0", "x", "9223372036854775808", "1, 2"])
    func `a Last-Event-ID that no event had is refused`(id: String) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let reply = try await ada.client.get(Self.path, ["Last-Event-ID": id])
            #expect(reply.status == 400)
            #expect(reply.code == "malformed_last_event_id")
        }
    }

    @Test func `a stream needs a session`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            #expect(try await app.client.get(Self.path).code == "unauthenticated")
            let other = try await app.logIn(ada)
            #expect(try await other.delete("/v1/sessions/current").status == 204)
            #expect(try await other.get(Self.path).code == "unauthenticated")
            #expect(app.revisions.streamCount == 0)
        }
    }

    @Test func `the streams of an ended session end, and no others`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let other = try await app.logIn(ada)
            let ended = try await Self.open(other)
            let staying = try await Self.open(ada.client)
            #expect(await Self.nextEvent(ended) == Self.event(0))
            #expect(await Self.nextEvent(staying) == Self.event(0))
            #expect(try await ada.client.delete("/v1/sessions").status == 200)
            #expect(await Self.nextEvent(ended) == nil)
            _ = try await ada.createItem()
            #expect(await Self.nextEvent(staying) == Self.event(1))
            await staying.close()
        }
    }

    @Test func `the streams of a locked account end`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let stream = try await Self.open(ada.client)
            #expect(await Self.nextEvent(stream) == Self.event(0))
            try await app.administer(
                "UPDATE saltern.accounts SET locked_at = '2026-01-01' WHERE account_id = '\(ada.id)'")
            #expect(await Self.nextEvent(stream) == nil)
        }
    }

    @Test func `the streams of an expired session end`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let stream = try await Self.open(ada.client)
            #expect(await Self.nextEvent(stream) == Self.event(0))
            app.clock.advance(by: .seconds(31 * 86_400))
            #expect(await Self.nextEvent(stream) == nil)
        }
    }

    @Test func `an account has a limited number of streams, and gets a place back when one ends`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var streams: [TestStream] = []
            for _ in 0..<RevisionWatcher.streamsPerAccount { streams.append(try await Self.open(ada.client)) }
            let refused = await ada.client.stream(Self.path)
            #expect(refused.response.status == 429)
            #expect(refused.response.code == "too_many_streams")
            #expect(refused.response.integer("limit") == RevisionWatcher.streamsPerAccount)
            #expect(refused.response.fields["Retry-After"] != nil)
            let grace = try await app.register()
            streams.append(try await Self.open(grace.client))
            await streams.removeFirst().close()
            try await eventually { app.revisions.streamCount == RevisionWatcher.streamsPerAccount }
            streams.append(try await Self.open(ada.client))
            for stream in streams { await stream.close() }
            try await eventually { app.revisions.streamCount == 0 }
        }
    }

    @Test func `HEAD takes no place among the streams`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0...RevisionWatcher.streamsPerAccount {
                #expect(try await ada.client.send(.head, Self.path).status == 200)
            }
            try await eventually { app.revisions.streamCount == 0 }
        }
    }

    @Test func `streams survive a database that is away, and hear of changes after`() async throws {
        try await TestApplication.with(acquireTimeout: .seconds(10)) { app in
            let ada = try await app.register()
            let stream = try await Self.open(ada.client)
            #expect(await Self.nextEvent(stream) == Self.event(0))
            try await app.closeDatabase()
            try await eventually { app.log.lines.contains { $0.contains("live_streams_unanswered") } }
            try await app.openDatabase()
            let (path, item) = ("/v1/items/\(Fixtures.uuid())", ItemTests.item())
            try await eventually {
                try await ada.client.put(path, item, ["If-None-Match": "*"]).status < 300
            }
            let event = try #require(await Self.nextEvent(stream))
            #expect(event.hasPrefix("id: "))
            await stream.close()
        }
    }

    /// As on a cluster of which a node is gone.
    @Test func `streams hear of changes while other accounts cannot be asked about, and those do after`() async throws {
        try await TestApplication.with { app in
            let gone = try await app.register()
            var others: [TestAccount] = []
            while others.count < 8 {
                let other = try await app.register()
                // Whoever is in the same part of the hashes is on the node that is gone, too.
                let accounts = try [gone, other].map { try #require(UUID($0.id)) }
                let parts = try await app.execute(FindHashParts(accounts: accounts))
                if parts[0].part != parts[1].part { others.append(other) }
            }
            let silent = try await Self.open(gone.client)
            #expect(await Self.nextEvent(silent) == Self.event(0))
            var streams: [TestStream] = []
            for other in others {
                streams.append(try await Self.open(other.client))
                #expect(await Self.nextEvent(streams[streams.count - 1]) == Self.event(0))
            }
            _ = try await gone.createItem()
            #expect(await Self.nextEvent(silent) == Self.event(1))
            try await app.administer(
                """
                CREATE FUNCTION saltern.answers(account uuid) RETURNS boolean LANGUAGE plpgsql AS $$
                BEGIN
                    IF account = '\(gone.id)' THEN RAISE 'its node is gone' USING ERRCODE = '08006'; END IF;
                    RETURN true;
                END $$;
                GRANT EXECUTE ON FUNCTION saltern.answers TO PUBLIC;
                CREATE POLICY nodes ON saltern.accounts USING (saltern.answers(account_id));
                ALTER TABLE saltern.accounts ENABLE ROW LEVEL SECURITY
                """)
            try await eventually { app.log.lines.contains { $0.contains("live_streams_unanswered") } }
            for (other, stream) in zip(others, streams) {
                _ = try await other.createItem()
                #expect(await Self.nextEvent(stream) == Self.event(1))
            }
            try await app.administer(
                "UPDATE saltern.accounts SET revision = revision + 1 WHERE account_id = '\(gone.id)'")
            #expect(app.log.lines.count { $0.contains("live_streams_unanswered") } == 1)
            try await app.administer("ALTER TABLE saltern.accounts DISABLE ROW LEVEL SECURITY")
            #expect(await Self.nextEvent(silent) == Self.event(2))
            try await eventually { app.log.lines.contains { $0.contains("live_streams_answered") } }
            for stream in streams + [silent] { await stream.close() }
        }
    }

    @Test func `what has moved is answered, and how many sessions are live`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let grace = try await app.register()
            _ = try await ada.createItem()
            var query = FindMovedRevisions.Query()
            for (account, revision) in [(ada, Int64(1)), (grace, 0), (ada, 0)] {
                let token = try PresentedToken(RequestFieldsFixture.bearer(account.client.token ?? ""))
                query.append(
                    SessionKey(accountID: token.accountID, tokenHash: token.hash), revision: revision)
            }
            let stranger = SessionToken(for: query.sessions[0].accountID)
            query.append(
                SessionKey(accountID: query.sessions[0].accountID, tokenHash: stranger.hash), revision: 1)
            let find = FindMovedRevisions(
                query: query, now: app.clock.now, idleSince: app.clock.now - .seconds(86_400))
            let found = try #require(try await app.execute(find).first)
            #expect(found.liveCount == 3)
            #expect(found.positions == [3])
            #expect(found.revisions == [1])
            let sessions = try await app.execute(FindLiveSessions(find: find))
            #expect(sessions.filter(\.isLive).map(\.position).sorted() == [1, 2, 3])
        }
    }
}
