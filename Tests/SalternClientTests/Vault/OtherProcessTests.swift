import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Two vaults with one store, as an app and its share extension are.
@Suite struct OtherProcessTests {
    private let folder: TemporaryDirectory
    private let settings: VaultSettings
    private let password = Password("password")

    init() throws {
        folder = try TemporaryDirectory(.memory)
        settings = .forTests(folder: folder.path, MemoryServer(), name: "phone")
    }

    /// Settings of the other process.
    private var patient: VaultSettings {
        var settings = settings
        settings.storePatience = .seconds(3_600)
        return settings
    }

    private static func isInUse(_ error: any Error) -> Bool {
        if case VaultError.store(.inUse) = error { true } else { false }
    }

    private func signUp() async throws -> Vault {
        try await Vault.signUp(settings, userid: "ada", password: password)
    }

    @Test func `another process waits until the store is lent, and what it writes is reported`() async throws {
        let app = try await signUp()
        let notes = app.collection("notes", of: Note.self)
        let (old, removed) = (try await notes.put(Note(text: "old")), try await notes.put(Note(text: "removed")))
        try await app.sync()
        await #expect { try await Vault.resume(settings) } throws: { Self.isInUse($0) }
        let patient = patient
        let waiting = Task {
            let vault = try #require(try await Vault.resume(patient))
            let notes = vault.collection("notes", of: Note.self)
            try await notes.put(Note(text: "changed"), old)
            try await notes.delete(removed)
            return try await notes.put(Note(text: "new"))
        }
        while !StoreTicket.isAwaited(settings.folder) { try await Task.sleep(for: .milliseconds(1)) }
        var changes = app.changes().makeAsyncIterator()
        try await app.lendStore()
        let new = try await waiting.value
        try await app.takeBackStore()
        #expect(await changes.next() == [old, removed, new])
        #expect(try await notes.contents().items == [old: Note(text: "changed"), new: Note(text: "new")])
        #expect(try await app.unsentCount() == 3)
        try await app.sync()
        #expect(try await app.unsentCount() == 0)
    }

    @Test func `while the store is lent every call says so, and nothing is lost`() async throws {
        let app = try await signUp()
        let notes = app.collection("notes", of: Note.self)
        let id = try await notes.put(Note(text: "a"))
        try await app.lendStore()
        try await app.lendStore()
        await #expect { try await notes.put(Note(text: "b"), id) } throws: { Self.isInUse($0) }
        await #expect { try await notes.contents() } throws: { Self.isInUse($0) }
        await #expect { try await app.sync() } throws: { Self.isInUse($0) }
        await #expect { try await app.signOut(discardingUnsentEdits: true) } throws: { Self.isInUse($0) }
        #expect(try await !app.takeBackStore())
        #expect(try await !app.takeBackStore())
        #expect(try await notes[id] == Note(text: "a"))
        try await app.signOut(discardingUnsentEdits: true)
        try await app.lendStore()
        await #expect { try await notes.contents() } throws: { if case VaultError.locked = $0 { true } else { false } }
    }

    @Test func `a store that another process uses is not taken back`() async throws {
        let app = try await signUp()
        try await app.lendStore()
        var other = try await Vault.resume(settings)
        #expect(try await other?.unsentCount() == 0)
        let returning = Task { try await app.takeBackStore() }
        while !StoreTicket.isAwaited(settings.folder) { try await Task.sleep(for: .milliseconds(1)) }
        await #expect { try await app.unsentCount() } throws: { Self.isInUse($0) }
        try await other?.lock()
        other = nil
        // It has locked the vault, for both.
        await #expect { try await returning.value } throws: { if case VaultError.locked = $0 { true } else { false } }
        #expect(await app.isLocked)
        try await app.unlock(password)
        // And the store can be lent again.
        try await app.lendStore()
        try await app.takeBackStore()
        #expect(await !app.isLocked)
    }

    @Test func `a vault that was locked when its store was lent is locked afterwards, without an error`() async throws {
        let app = try await signUp()
        try await app.lock()
        try await app.lendStore()
        _ = try await Vault.resume(settings)
        try await app.takeBackStore()
        #expect(await app.isLocked)
        try await app.unlock(password)
    }
}
