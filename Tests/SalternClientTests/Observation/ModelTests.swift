import Foundation
import Observation
import SalternTesting
import Testing

@testable import SalternClient

/// The models for SwiftUI, without SwiftUI.
@MainActor @Suite struct ModelTests {
    private let folder: TemporaryDirectory
    private let server = LossyTransport(MemoryServer())
    private let settings: VaultSettings
    private let password = Password("password")

    init() throws {
        folder = try TemporaryDirectory(.memory)
        settings = .forTests(folder: folder.path, server, name: "phone")
    }

    private func signUp() async throws -> Vault {
        try await Vault.signUp(settings, userid: "ada", password: password)
    }

    /// Waits until what is observed fulfils a condition, as a view is drawn again after each change.
    private func wait(until condition: @MainActor () -> Bool) async {
        while true {
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            let isFulfilled = withObservationTracking {
                condition()
            } onChange: {
                continuation.yield()
            }
            if isFulfilled { return }
            for await _ in stream { break }
        }
    }

    @Test
    func `a collection's model shows its items in order after each change, and nothing while the vault is locked`()
        async throws
    {
        let vault = try await signUp()
        let notes = vault.collection("notes", of: Note.self)
        let model = CollectionModel(notes, sorted: .by(\.text))
        #expect(!model.isLoaded)
        await wait { model.isLoaded }
        #expect(model.entries.isEmpty)
        let pepper = try #require(await model.put(Note(text: "pepper")))
        try await notes.put(Note(text: "salt"))
        let oil = try await notes.put(Note(text: "oil"), title: "a title")
        await wait { model.values.map(\.text) == ["oil", "pepper", "salt"] }
        #expect(model.entries.first == CollectionEntry(id: oil, title: "a title", value: Note(text: "oil")))
        await model.put(Note(text: "zatar"), pepper)
        await wait { model.values.map(\.text) == ["oil", "salt", "zatar"] }
        await model.delete(pepper)
        await wait { model.values.map(\.text) == ["oil", "salt"] }

        try await vault.lock()
        await wait { !model.isLoaded }
        #expect(model.entries.isEmpty && model.contents.items.isEmpty)
        // Locked, there is nothing to write to: the model says so.
        #expect(model.error == nil)
        #expect(await model.put(Note(text: "new")) == nil)
        guard case VaultError.locked? = model.error else {
            Issue.record("\(String(describing: model.error))")
            return
        }
        try await vault.unlock(password)
        await wait { model.values.map(\.text) == ["oil", "salt"] }
        try await vault.signOut(discardingUnsentEdits: true)
        await wait { !model.isLoaded }
        #expect(model.entries.isEmpty)
    }

    @Test func `a vault's model shows locking, syncing, what is unsent, and a sign-out`() async throws {
        let vault = try await signUp()
        let model = await VaultModel(vault)
        #expect(!model.isLocked && !model.isSignedOut && model.unsentCount == 0)
        try await vault.collection("notes", of: Note.self).put(Note(text: "salt"))
        await wait { model.unsentCount == 1 }
        #expect(await model.perform { try await vault.sync() })
        await wait { model.unsentCount == 0 }
        await wait { if case .inStep = model.state { true } else { false } }
        server.setUnreachable(true)
        #expect(await !model.perform { try await vault.sync() })
        guard case VaultError.unavailable(.transport(.unreachable))? = model.error else {
            Issue.record("\(String(describing: model.error))")
            return
        }
        await wait { if case .failed = model.state { true } else { false } }
        try await vault.lock()
        await wait { model.isLocked }
        // A model that begins while the vault is locked shows that from the beginning.
        #expect(await VaultModel(vault).isLocked)
        try await vault.unlock(password)
        await wait { !model.isLocked }
        try await vault.signOut(discardingUnsentEdits: true)
        await wait { model.isSignedOut }
    }

    @Test func `a vault's model shows notices until they are forgotten`() async throws {
        let vault = try await signUp()
        let id = try await vault.collection("notes", of: Note.self).put(Note(text: "salt"))
        try await vault.addNotice(.conflict, id)
        let model = await VaultModel(vault)
        try await vault.forget(#require(model.notices.first))
        await wait { model.notices.isEmpty }
        try await vault.signOut(discardingUnsentEdits: true)
    }

    @Test func `an action that is cancelled leaves no error`() async throws {
        let model = await VaultModel(try await signUp())
        for error: any Error in [
            CancellationError(), VaultError.unavailable(.transport(.cancelled)), TransportError.cancelled,
        ] {
            #expect(await !model.perform { throw error })
            #expect(model.error == nil)
        }
        #expect(await !model.perform { throw VaultError.notFound })
        #expect(model.error != nil)
    }

    @Test func `a model that is released keeps no vault`() async throws {
        var vault: Vault? = try await signUp()
        weak let released = vault
        var models: (VaultModel, CollectionModel<Note>)? = (
            await VaultModel(try #require(vault)), CollectionModel(try #require(vault).collection("notes"))
        )
        await wait { models?.1.isLoaded == true }
        vault = nil
        models = nil
        // Their tasks come to their end by themselves.
        for _ in 0..<6_000 where released != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(released == nil)
    }
}

extension Vault {
    fileprivate func addNotice(_ kind: Notice.Kind, _ item: ItemID) throws { try store.note(kind, item) }
}
