import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct DatabaseFailureTests {
    @Test func `a database that goes away is answered 503, and comes back by itself`() async throws {
        // Longer than a connection takes to be opened on a busy machine.
        try await TestApplication.with(connections: 2, acquireTimeout: .seconds(10)) { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            try await app.closeDatabase()
            async let read = ada.client.get(path)
            async let written = ada.client.put(path, ItemTests.item(), ["If-Match": "*"])
            async let parameters = app.client.post("/v1/kdf", ["userid": "ada"])
            async let readiness = app.client.get("/v1/health/ready")
            for reply in try await [read, written, parameters, readiness] {
                #expect(reply.status == 503)
                #expect(reply.code == "database_unavailable")
                #expect(reply.fields["Retry-After"].flatMap(Int.init) ?? 0 >= 1)
            }
            #expect(try await app.client.get("/v1/health/live").status == 200)
            #expect(
                app.log.lines.contains { $0.contains(#""event":"database_error""#) && $0.contains(#""level":"error""#) }
            )

            try await app.openDatabase()
            var again = try await ada.client.get(path)
            // The next attempt to connect is at most some hundred milliseconds away.
            for _ in 0..<100 where again.status == 503 { again = try await ada.client.get(path) }
            #expect(again.status == 200)
            #expect(again.integer("revision") == 1)
            app.clock.advance(by: .seconds(1))
            #expect(try await app.client.get("/v1/health/ready").status == 200)
        }
    }

    /// As while a backup is restored.
    @Test func `a schema that is away is answered 503, and requests go on when it is back`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            try await app.administer("ALTER SCHEMA saltern RENAME TO aside")
            for reply in [
                try await ada.client.get(path),
                try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]),
                try await app.client.get("/v1/health/ready"),
            ] {
                #expect(reply.status == 503)
                #expect(reply.code == "database_unavailable")
                #expect(reply.fields["Retry-After"] != nil)
            }
            try await app.administer("ALTER SCHEMA aside RENAME TO saltern")
            #expect(try await ada.client.get(path).integer("revision") == 1)
        }
    }

    @Test func `a full disk is answered 507 and nothing is changed`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            try await app.administer(
                """
                CREATE FUNCTION pg_temp_disk_full() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'no space for ''canary''' USING ERRCODE = '53100'; END $$;
                CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON saltern.items
                    FOR EACH ROW EXECUTE FUNCTION pg_temp_disk_full();
                """)
            let reply = try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"])
            #expect(reply.status == 507)
            #expect(reply.code == "storage_full")
            #expect(reply.fields["Retry-After"] == "60")
            #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 507)
            try await app.administer("DROP TRIGGER full_disk ON saltern.items")
            #expect(try await ada.client.get(path).integer("revision") == 1)
            let usage = try await ada.client.get("/v1/account")
            #expect(usage.integer("usage.items") == 1)
            #expect(!app.log.lines.contains { $0.contains("canary") })
        }
    }

    @Test func `an error that nobody expected is 500, says nothing, and is logged`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await app.administer("ALTER TABLE saltern.items RENAME COLUMN format TO canary")
            let reply = try await ada.client.get("/v1/items/\(Fixtures.uuid())")
            #expect(reply.status == 500)
            #expect(reply.code == "internal_error")
            #expect(!reply.text.contains("canary"))
            let line = app.log.lines.first { $0.contains("database_error") }
            #expect(line?.contains("42703") == true)
            #expect(line?.contains(try #require(reply.string("requestId"))) == true)
        }
    }

    @Test func `a schema of another version is not ready`() async throws {
        try await TestApplication.with { app in
            #expect(try await app.client.get("/v1/health/ready").status == 200)
            try await app.administer(
                "INSERT INTO saltern.schema_migrations VALUES (9999, 'later', sha256('later'), now())")
            app.clock.advance(by: .seconds(1))
            let reply = try await app.client.get("/v1/health/ready")
            #expect(reply.status == 503)
            #expect(reply.code == "schema_mismatch")
        }
    }
}
