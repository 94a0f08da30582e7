import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ServiceAdministrationTests {
    private func administered<Result: Sendable>(
        _ app: TestApplication, _ body: @escaping @Sendable (ServiceAdministration) async throws -> Result
    ) async throws -> Result {
        try await app.asOwner { try await body(ServiceAdministration(database: $0)) }
    }

    @Test func `a service is found by its credential until it is removed`() async throws {
        try await TestApplication.with { app in
            let (name, audience) = (try #require(ServiceName("billing-1")), try #require(AudienceName("billing")))
            let signature = AuditSignature(actor: .user(0), now: app.clock.now)
            let credential = try await administered(app) { try await $0.create(name, for: audience, by: signature) }
            #expect(credential.text.hasPrefix("sls_") && credential.text.utf8.count == 47)
            let found = try await app.execute(FindService(hash: credential.hash))
            #expect(found.map(\.audience) == [audience])
            #expect(try await administered(app) { try await $0.services() } == found)

            await #expect(throws: ServiceAdministration.Refusal.nameTaken) {
                try await administered(app) { try await $0.create(name, for: audience, by: signature) }
            }
            try await administered(app) { try await $0.remove(name, by: signature) }
            #expect(try await app.execute(FindService(hash: credential.hash)).isEmpty)
            await #expect(throws: ServiceAdministration.Refusal.noSuchService) {
                try await administered(app) { try await $0.remove(name, by: signature) }
            }
        }
    }

    @Test func `a credential that cannot be shown leaves no service`() async throws {
        struct Lost: Error {}
        try await TestApplication.with { app in
            let (name, audience) = (try #require(ServiceName("a")), try #require(AudienceName("b")))
            let signature = AuditSignature(actor: .user(0), now: app.clock.now)
            await #expect(throws: Lost.self) {
                try await administered(app) {
                    try await $0.create(name, for: audience, by: signature) { _ in throw Lost() }
                }
            }
            #expect(try await administered(app) { try await $0.services() }.isEmpty)
        }
    }
}
