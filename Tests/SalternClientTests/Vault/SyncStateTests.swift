import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What an app can show of how a vault and its server stand to each other.
@Suite struct SyncStateTests {
    private enum Kind: Equatable { case idle, locked, signedOut, syncing, inStep, failed, waiting }

    private static func kind(_ state: SyncState) -> Kind {
        switch state {
        case .idle: .idle
        case .locked: .locked
        case .signedOut: .signedOut
        case .syncing: .syncing
        case .inStep: .inStep
        case .failed(_, next: nil): .failed
        case .failed: .waiting
        }
    }

    @Test(.timeLimit(.minutes(60))) func `each sync says how it goes, and following when it tries again`() async throws
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
            await wait(for: .locked)
            await #expect(throws: VaultError.self) { try await vault.sync() }
            #expect(await Self.kind(vault.state) == .locked)
            try await vault.unlock(password)
            await wait(for: .idle)
            try await vault.signOut()
            await wait(for: .signedOut)
        }
    }

    @Test func `a locked vault says so from the beginning, and after a sign-out every sequence ends`() async throws {
        let folder = try TemporaryDirectory()
        let settings = VaultSettings.forTests(folder: folder.path, MemoryServer(), name: "phone")
        let password = Password("password")
        var first: Vault? = try await Vault.signUp(settings, userid: "ada", password: password)
        try await first?.lock()
        first = nil
        let vault = try #require(try await Vault.resume(settings))
        var states: [Kind] = []
        let all = await vault.states()
        let contents = vault.collection("notes", of: Note.self).observe()
        let (changes, progress) = (vault.changes(), vault.progress())
        try await vault.unlock(password)
        try await vault.signOut()
        for await state in all { states.append(Self.kind(state)) }
        for await _ in changes {}
        for await _ in progress {}
        for await _ in contents {}
        for await _ in vault.changes() {}
        for await state in await vault.states() { states.append(Self.kind(state)) }
        #expect(states == [.signedOut, .signedOut])
    }

    @Test func `a collection's contents come anew after each change, and after the vault is unlocked`() async throws {
        let folder = try TemporaryDirectory()
        let settings = VaultSettings.forTests(folder: folder.path, MemoryServer(), name: "phone")
        let password = Password("password")
        let vault = try await Vault.signUp(settings, userid: "ada", password: password)
        let notes = vault.collection("notes", of: Note.self)
        var contents = notes.observe().makeAsyncIterator()
        #expect(await contents.next()?.items.isEmpty == true)
        let id = try await notes.put(Note(text: "a"), title: "title")
        var seen = await contents.next()
        while seen?.items.isEmpty == true { seen = await contents.next() }
        #expect(seen?.items == [id: Note(text: "a")] && seen?.titles == [id: "title"])
        try await vault.lock()
        try await vault.unlock(password)
        try await notes.delete(id)
        seen = await contents.next()
        while seen?.items.isEmpty == false { seen = await contents.next() }
        #expect(seen?.items.isEmpty == true)
        try await vault.signOut(discardingUnsentEdits: true)
        while seen != nil { seen = await contents.next() }
    }
}
