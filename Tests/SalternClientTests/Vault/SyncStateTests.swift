import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What an app can show of how a vault and its server stand to each other.
@Suite struct SyncStateTests {
    private enum Kind: Equatable { case idle, syncing, inStep, failed, waiting }

    private static func kind(_ state: SyncState) -> Kind {
        switch state {
        case .idle: .idle
        case .syncing: .syncing
        case .inStep: .inStep
        case .failed(_, next: nil): .failed
        case .failed: .waiting
        }
    }

    @Test(.timeLimit(.minutes(25))) func `each sync says how it goes, and following when it tries again`() async throws
    {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let password = Password("correct horse battery staple")
            let vault = try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password)
            let states = await vault.states()
            func wait(for kind: Kind) async { for await state in states where Self.kind(state) == kind { break } }
            await wait(for: .idle)

            let meanwhile = Mutex(Kind.idle)
            phone.link.interrupt(
                .init(exchange: 0, moment: .beforeRequest) {
                    let kind = await Self.kind(vault.state)
                    meanwhile.withLock { $0 = kind }
                })
            try await vault.sync()
            #expect(meanwhile.withLock { $0 } == .syncing)
            await wait(for: .inStep)

            phone.link.setFate { .losesRequest }
            await #expect(throws: VaultError.self) { try await vault.sync() }
            await wait(for: .failed)
            let following = Task { try await vault.keepInSync() }
            defer { following.cancel() }
            await wait(for: .waiting)
            phone.link.setFate { .passes }
            await wait(for: .inStep)

            following.cancel()
            _ = await following.result
            #expect(await Self.kind(vault.state) == .inStep)
            try await vault.lock()
            await wait(for: .idle)
            await #expect(throws: VaultError.self) { try await vault.sync() }
            #expect(await Self.kind(vault.state) == .idle)
        }
    }
}
