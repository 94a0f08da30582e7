import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct InviteAdministrationTests {
    @Test func `invites are listed with what became of them, and every act is in the audit log`() async throws {
        try await TestApplication.with { app in
            let invites = try await InviteTests.invite(app, 3, plan: "pro")
            _ = try await InviteTests.register(app, invites[0].code.text)
            try await InviteTests.administer(app) { administration in
                try await administration.revoke(invites[1].id, by: InviteTests.signature(app))
                // Taking it back again changes nothing.
                try await administration.revoke(invites[1].id, by: InviteTests.signature(app))
            }
            let now = app.clock.now
            let (open, all) = try await InviteTests.administer(app) { administration in
                (
                    try await administration.invites(includingSpent: false, limit: 9, now: now),
                    try await administration.invites(includingSpent: true, limit: 9, now: now)
                )
            }
            #expect(open.map(\.id) == [invites[2].id])
            #expect(open[0].plan == "pro")
            #expect(open[0].note == "for Ada")
            let states = Dictionary(uniqueKeysWithValues: all.map { ($0.id, $0.state(at: now)) })
            #expect(states == [invites[0].id: .used, invites[1].id: .revoked, invites[2].id: .open])
            #expect(open[0].state(at: open[0].expiresAt) == .expired)

            let postgres = app.postgres
            let entries = try await app.run { try await AuditReview(database: postgres).latest(9) }
            #expect(entries.map(\.action) == ["invite_revoked"] + Array(repeating: "invite_created", count: 3))
            #expect(entries[0].detail == "invite \(invites[1].id)")
            #expect(entries[1].detail == "invite \(invites[2].id), plan pro")
            #expect(entries.allSatisfy { $0.actor == "ada" })
            #expect(try await AuditLogTests.verify(app).sequence == 4)
        }
    }

    @Test func `what cannot be made or taken back is refused, and leaves nothing`() async throws {
        try await TestApplication.with { app in
            await #expect(throws: InviteAdministration.Refusal.noSuchPlan) {
                try await InviteTests.invite(app, plan: "gold")
            }
            let invite = try await InviteTests.invite(app)[0]
            _ = try await InviteTests.register(app, invite.code.text)
            await #expect(throws: InviteAdministration.Refusal.used) {
                try await InviteTests.administer(app) { try await $0.revoke(invite.id, by: InviteTests.signature(app)) }
            }
            await #expect(throws: InviteAdministration.Refusal.noSuchInvite) {
                try await InviteTests.administer(app) { try await $0.revoke(.random(), by: InviteTests.signature(app)) }
            }
            #expect(try await AuditLogTests.verify(app).sequence == 1)
        }
    }

    @Test func `an invite is either taken back or used, never both`() async throws {
        try await TestApplication.with(connections: 2) { app in
            for invite in try await InviteTests.invite(app, 10) {
                async let registered = InviteTests.register(app, invite.code.text).status
                let isRevoked: Bool
                do {
                    try await InviteTests.administer(app) {
                        try await $0.revoke(invite.id, by: InviteTests.signature(app))
                    }
                    isRevoked = true
                } catch InviteAdministration.Refusal.used {
                    isRevoked = false
                }
                #expect(try await registered == (isRevoked ? 403 : 201))
            }
        }
    }
}
