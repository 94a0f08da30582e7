import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct InviteTests {
    static var invited: ServiceConfiguration {
        var configuration = TestApplication.configuration
        configuration.registration = .invite
        return configuration
    }

    /// Makes invites with the rights of the schema's owner.
    static func invite(
        _ app: TestApplication, _ count: Int = 1, plan: String? = nil, lasting: Duration = .seconds(86_400)
    ) async throws -> [InviteAdministration.New] {
        let terms = InviteAdministration.Terms(expiresAt: app.clock.now + lasting, plan: plan, note: "for Ada")
        return try await administer(app) { try await $0.create(count, terms, by: signature(app)) }
    }

    static func administer<Result: Sendable>(
        _ app: TestApplication, _ body: @escaping @Sendable (InviteAdministration) async throws -> Result
    ) async throws -> Result {
        try await app.asOwner { try await body(InviteAdministration(database: $0)) }
    }

    static func signature(_ app: TestApplication) -> AuditSignature {
        AuditSignature(actor: AuditLogTests.admin, now: app.clock.now)
    }

    static func register(
        _ app: TestApplication, _ invite: String?, _ userid: String = Fixtures.userid()
    ) async throws -> TestResponse {
        var body: [(name: String, value: JSONValue)] = [
            (name: "userid", value: .string(userid)),
            (name: "passwordKey", value: .string(Fixtures.passwordKey(userid))),
            (name: "kdf", value: ["iterations": 600_000]),
        ]
        if let invite { body.append((name: "invite", value: .string(invite))) }
        return try await app.client.post("/v1/accounts", .object(JSONObject(body)))
    }

    @Test func `an invite opens one account, and gives it its plan`() async throws {
        try await TestApplication.with(Self.invited) { app in
            #expect(try await app.client.get("/v1/service").string("registration") == "invite")
            let without = try await Self.register(app, nil)
            #expect(without.status == 403)
            #expect(without.code == "invite_required")
            #expect(try await Self.register(app, "").code == "invite_required")
            let invites = try await Self.invite(app, 2, plan: "pro")
            let registered = try await Self.register(app, invites[0].code.text)
            #expect(registered.status == 201, "\(registered)")
            let client = app.client.with(token: registered.string("session.token"))
            #expect(try await client.get("/v1/account").string("plan") == "pro")
            let again = try await Self.register(app, invites[0].code.text)
            #expect(again.status == 403)
            #expect(again.code == "invalid_invite")
            #expect(try await Self.register(app, invites[1].code.text).status == 201)
        }
    }

    @Test func `an invite is read as it is pasted`() async throws {
        try await TestApplication.with(Self.invited) { app in
            let invites = try await Self.invite(app, 8)
            let pastes: [(String) -> String] = [
                { " \($0)" }, { "\($0)\r\n" }, { "\u{A0}\($0)\u{A0}" }, { "\t\($0.prefix(20))\n\($0.dropFirst(20))" },
                { "\u{FEFF}\($0)\u{200B}" }, { $0.replacing("-", with: "\u{2013}") },
                { $0.replacing("-", with: "\u{2011}") },
                { String($0.unicodeScalars.map { Character(Unicode.Scalar($0.value + 0xFEE0) ?? $0) }) },
            ]
            for (invite, paste) in zip(invites, pastes) {
                let text = paste(invite.code.text)
                #expect(try await Self.register(app, text).status == 201, "\(text.unicodeScalars.map(\.value))")
            }
        }
    }

    @Test func `unknown, used, revoked, expired and malformed invites are the same to strangers`() async throws {
        try await TestApplication.with(Self.invited) { app in
            let invites = try await Self.invite(app, 4, lasting: .seconds(60))
            _ = try await Self.register(app, invites[0].code.text)
            try await Self.administer(app) { try await $0.revoke(invites[1].id, by: Self.signature(app)) }
            var texts = [
                invites[0].code.text, invites[1].code.text, InviteCode.random().text, "sli_", "slt_" + "A",
                String(invites[2].code.text.dropLast()), invites[2].code.text + "A", invites[2].code.text + "=",
                String(invites[2].code.text.dropFirst(4)), "SLI_" + invites[2].code.text.dropFirst(4),
            ]
            app.clock.advance(by: .seconds(59))
            #expect(try await Self.register(app, invites[2].code.text).status == 201)
            app.clock.advance(by: .seconds(1))
            texts.append(invites[3].code.text)
            for text in texts {
                let reply = try await Self.register(app, text)
                #expect(reply.status == 403, "\(text)")
                #expect(reply.code == "invalid_invite", "\(text)")
                #expect(reply.string("field") == "invite")
                #expect(reply.string("detail") == "`invite` is not valid or no longer valid.")
            }
            #expect(try await app.execute(CountRows()) == [[2, 2, 2]])
        }
    }

    @Test func `fifty who use one invite at once make one account, and the invite of none that failed is used`()
        async throws
    {
        try await TestApplication.with(Self.invited, connections: 4) { app in
            let code = try await Self.invite(app)[0].code.text
            let replies = try await withThrowingTaskGroup(of: TestResponse.self) { group in
                for _ in 0..<50 { group.addTask { try await Self.register(app, code) } }
                return try await group.reduce(into: [TestResponse]()) { $0.append($1) }
            }
            #expect(replies.filter { $0.status == 201 }.count == 1)
            #expect(replies.filter { $0.code == "invalid_invite" }.count == 49)
            #expect(try await app.execute(CountRows()) == [[1, 1, 1]])
        }
    }

    @Test func `fifty invites for one userid make one account, and forty-nine are still good`() async throws {
        try await TestApplication.with(Self.invited, connections: 4) { app in
            let invites = try await Self.invite(app, 50)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for invite in invites { group.addTask { try await Self.register(app, invite.code.text, "ada").status } }
                return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
            }
            #expect(statuses == [201: 1, 409: 49])
            let open = try await Self.administer(app) {
                try await $0.invites(includingSpent: false, limit: 100, now: app.clock.now)
            }
            #expect(open.count == 49)
        }
    }

    @Test func `a userid that is taken is told to who has an invite, and to nobody else`() async throws {
        try await TestApplication.with(Self.invited) { app in
            let invites = try await Self.invite(app, 2)
            #expect(try await Self.register(app, invites[0].code.text, "ada").status == 201)
            let taken = try await Self.register(app, invites[1].code.text, "ada")
            #expect(taken.code == "userid_taken")
            for code in [nil, InviteCode.random().text] {
                let known = try await Self.register(app, code, "ada")
                let unknown = try await Self.register(app, code, "nobody")
                #expect(known.status == 403)
                #expect(known.code == unknown.code)
            }
            // Who sends the same registration again has missed the reply: the account is there, and can be logged in to.
            #expect(try await Self.register(app, invites[0].code.text, "ada").code == "userid_taken")
            #expect(try await Self.register(app, invites[0].code.text, "bob").code == "invalid_invite")
            // An invite that another account came with says nothing about a userid.
            #expect(try await Self.register(app, invites[1].code.text, "bob").status == 201)
            #expect(try await Self.register(app, invites[1].code.text, "ada").code == "invalid_invite")
        }
    }

    @Test func `where registration is open an invite counts as well, and where it is closed none does`() async throws {
        try await TestApplication.with { app in
            let code = try await Self.invite(app, plan: "pro")[0].code.text
            for absent in [nil, "", " \r\n\u{FEFF}"] { #expect(try await Self.register(app, absent).status == 201) }
            let registered = try await Self.register(app, code)
            let client = app.client.with(token: registered.string("session.token"))
            #expect(try await client.get("/v1/account").string("plan") == "pro")
            #expect(try await Self.register(app, code).code == "invalid_invite")

            var closed = TestApplication.configuration
            closed.registration = .closed
            let other = try await Self.invite(app)[0].code.text
            try await TestApplication.with(closed, app.database, clock: app.clock) { app in
                let refused = try await Self.register(app, other)
                #expect(refused.code == "registration_closed")
            }
            #expect(try await Self.register(app, other).status == 201)
        }
    }

    @Test func `neither log nor database holds a code`() async throws {
        try await TestApplication.with(Self.invited) { app in
            let code = try await Self.invite(app)[0].code
            _ = try await Self.register(app, code.text)
            _ = try await Self.register(app, code.text)
            for line in app.log.lines { #expect(!line.contains(code.text.dropFirst(4)), "\(line)") }
            #expect(try await app.execute(FindInviteOfCode(hash: code.hash)).count == 1)
            var dumped = ""
            dump(code, to: &dumped)
            #expect(!(dumped + "\(code)").contains(code.text.dropFirst(4)))
        }
    }
}
