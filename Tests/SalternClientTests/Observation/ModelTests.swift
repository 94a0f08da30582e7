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
        let version = try await notes.version(of: oil)
        #expect(
            model.entries.first
                == CollectionEntry(id: oil, title: "a title", value: Note(text: "oil"), version: version))
        await model.put(Note(text: "pepper, zatar"), pepper, over: model.entries.first { $0.id == pepper }?.version)
        #expect(await model.edit(pepper) { $0.text = "zatar" } == Note(text: "zatar"))
        await wait { model.values.map(\.text) == ["oil", "salt", "zatar"] }
        await model.delete(pepper)
        await wait { model.values.map(\.text) == ["oil", "salt"] }
        #expect(await model.edit(pepper) { $0.text = "gone" } == nil)
        guard case VaultError.notFound? = model.error else {
            Issue.record("\(String(describing: model.error))")
            return
        }
        model.error = nil

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

    @Test(.timeLimit(.minutes(60)))
    func `a vault's model counts the unsent changes of shared vaults, too`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        for _ in 0..<2 { try await ada.sync() }
        let model = await VaultModel(ada)
        #expect(model.unsentCount == 0)
        try await family.collection("notes", of: Note.self).put(Note(text: "salt"))
        #expect(await VaultModel(ada).unsentCount == 1)
        await wait { model.unsentCount == 1 }
        for _ in 0..<2 { try await ada.sync() }
        await wait { model.unsentCount == 0 }
    }

    @Test(.timeLimit(.minutes(60)))
    func `a model of a shared vault's collection shows edits of this device and of other members`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        let joined = try await people.join(family, bob, as: "Bob")
        for vault in [ada, bob] { try await vault.sync() }
        let model = CollectionModel(family.collection("notes", of: Note.self), sorted: .by(\.text))
        await wait { model.isLoaded }
        #expect(model.entries.isEmpty)
        let salt = try #require(await model.put(Note(text: "salt")))
        await wait { model.values.map(\.text) == ["salt"] }
        try await ada.sync()
        try await bob.sync()
        let theirs = joined.collection("notes", of: Note.self)
        try await theirs.put(Note(text: "pepper"), salt)
        try await theirs.put(Note(text: "oil"))
        try await bob.sync()
        try await ada.sync()
        await wait { model.values.map(\.text) == ["oil", "pepper"] }
        // A collection of the account with the same name is another one.
        try await ada.collection("notes", of: Note.self).put(Note(text: "own"))
        #expect(model.values.map(\.text) == ["oil", "pepper"])
    }

    @Test(.timeLimit(.minutes(60)))
    func `a vault's model goes on to sync after an unlocking and after a log-in, until a sign-out`() async throws {
        try await LiveServer.with { live in
            let devices = try [Device("phone", live), Device("laptop", live)]
            let phone = try await Vault.signUp(devices[0].settings, userid: "ada", password: password)
            let laptop = try await Vault.logIn(devices[1].settings, userid: "ada", password: password)
            let notes = CollectionModel(phone.collection("notes", of: Note.self), sorted: .by(\.text))
            var expected: [String] = []
            func expectNews(_ text: String) async throws {
                try await laptop.collection("notes", of: Note.self).put(Note(text: text))
                try await laptop.sync()
                expected.append(text)
                await wait { notes.values.map(\.text) == expected }
            }

            try await phone.lock()
            let model = await VaultModel(phone)
            let following = Task { await model.keepInSync() }
            try await phone.unlock(password)
            try await expectNews("a")
            #expect(model.error == nil)

            // The password is changed elsewhere, which ends this session.
            try await laptop.changePassword(from: password, to: Password("another"))
            await wait { if case .failed(.sessionEnded, next: nil) = model.state { true } else { false } }
            await wait { model.error != nil }
            model.error = nil
            try await phone.logInAgain(password: Password("another"))
            try await expectNews("b")
            #expect(model.error == nil)

            // A new password is a new session, too.
            try await phone.changePassword(from: Password("another"), to: password)
            try await laptop.logInAgain(password: password)
            try await expectNews("c")
            #expect(model.error == nil)
            try await phone.signOut(discardingUnsentEdits: true)
            await following.value
            #expect(model.error == nil)
        }
    }

    @Test func `a new session ends the failure of the session before`() async throws {
        let vault = try await signUp()
        let model = await VaultModel(vault)
        server.setUnreachable(true)
        #expect(await !model.perform { try await vault.sync() })
        await wait { if case .failed = model.state { true } else { false } }
        server.setUnreachable(false)
        try await vault.logInAgain(password: password)
        await wait { if case .idle = model.state { true } else { false } }
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
        try await eventually(every: .milliseconds(10)) { released == nil }
    }
}

extension Vault {
    fileprivate func addNotice(_ kind: Notice.Kind, _ item: ItemID) throws { try store.note(kind, item) }
}
