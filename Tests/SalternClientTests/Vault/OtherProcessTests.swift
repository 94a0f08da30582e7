import Foundation
import SalternTesting
import Synchronization
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

    @Test func `the return of a store reports a write that a round of a folder has met before`() async throws {
        let app = try await signUp()
        try await app.lendStore()
        let id = try await {
            let vault = try #require(try await Vault.resume(settings))
            return try await vault.collection("notes", of: Note.self).put(Note(text: "new"))
        }()
        var changes = app.changes().makeAsyncIterator()
        #expect(try await app.reclaimStore() == 1)
        await app.endStoreUse()
        // Without a report there are no changes to wait for.
        try #require(try await app.takeBackStore())
        #expect(await changes.next() == [id])
        #expect(try await !app.takeBackStore())
    }

    @Test func `the next write to a lent store has another time than the last one`() async throws {
        let app = try await signUp()
        try await app.collection("notes", of: Note.self).put(Note(text: "new"))
        try await app.lendStore()
        var (file, now) = (stat(), timespec())
        #expect(lstat(settings.folder.appending(path: "store.sqlite").path, &file) == 0)
        clock_gettime(CLOCK_REALTIME, &now)
        let age = (now.tv_sec - file.st_mtim.tv_sec) * 1_000_000_000 + now.tv_nsec - file.st_mtim.tv_nsec
        #expect(age >= 10_000_000)
        try await app.takeBackStore()
    }

    /// Each wait between two attempts is longer than the test.
    @Test(arguments: [true, false])
    func `a sync without a network repeats no request while the store is wanted`(_ isByApp: Bool) async throws {
        let link = LossyTransport(MemoryServer())
        var settings = VaultSettings.forTests(folder: folder.path, link, name: "phone")
        settings.retries = Retries(attempts: 5, waits: .seconds(600)...(.seconds(600)))
        let app = try await Vault.signUp(settings, userid: "ada", password: password)
        try await app.sync()
        if !isByApp {
            await app.beginLending()
            _ = try await app.reclaimStore()
        }
        let attempts = Mutex(0)
        link.setUnreachable { _ in
            attempts.withLock { $0 += 1 }
            return true
        }
        let syncing = Task { try await app.sync() }
        while attempts.withLock({ $0 }) == 0 { try await Task.sleep(for: .milliseconds(1)) }
        if isByApp {
            try await app.lendStore()
        } else {
            let waiting = Task { [settings = patient] in _ = try await Vault.resume(settings) }
            await #expect(throws: VaultError.self) { try await syncing.value }
            await app.endStoreUse()
            try await waiting.value
        }
        await #expect { try await syncing.value } throws: {
            if case VaultError.unavailable(.transport(.unreachable)) = $0 { true } else { false }
        }
        #expect(attempts.withLock { $0 } == 1)
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

    @Test func `a store that another process has given another account is not taken over`() async throws {
        try await LiveServer.with { server in
            var settings = VaultSettings.forTests(
                folder: folder.path, try CurlTransport(server.address()), name: "phone")
            settings.storePatience = .seconds(3_600)
            let app = try await Vault.signUp(settings, userid: "ada", password: password)
            let notes = app.collection("notes", of: Note.self)
            try await notes.put(Note(text: "of ada"))
            try await app.sync()
            try await app.lendStore()
            try await {
                let vault = try #require(try await Vault.resume(settings))
                try await vault.signOut()
            }()
            let id = try await {
                let vault = try await Vault.signUp(settings, userid: "grace", password: password)
                return try await vault.collection("notes", of: Note.self).put(Note(text: "of grace"))
            }()
            await #expect { try await app.takeBackStore() } throws: {
                if case VaultError.otherAccount = $0 { true } else { false }
            }
            await #expect { try await notes.put(Note(text: "again of ada")) } throws: {
                if case VaultError.locked = $0 { true } else { false }
            }
            try await app.unlock(password)
            #expect(try await notes.contents().items == [id: Note(text: "of grace")])
        }
    }

    @Test func `a log-in that completes during an unlock keeps its session`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let app = try await Vault.signUp(phone.settings, userid: "ada", password: password)
            let laptop = try await Vault.logIn(
                try Device("laptop", server).settings, userid: "ada", password: password)
            for _ in 0..<20 {
                _ = try await laptop.endOtherSessions()
                try await app.lock()
                async let unlocking: Void = app.unlock(password)
                async let logIn: Void = app.logInAgain(password: password)
                _ = try await (unlocking, logIn)
                try await app.sync()
            }
        }
    }

    /// Waits until no other process has the store, and opens it as one.
    private func other<Result>(_ body: (Vault) async throws -> Result) async throws -> Result {
        try await body(try #require(try await Vault.resume(patient)))
    }

    @Test(arguments: [false, true])
    func `of several rounds that use the store, the last one that stops or ends lets another process have it`(
        ends: Bool
    ) async throws {
        let app = try await signUp()
        for _ in 0..<3 { #expect(try await app.reclaimStore() == 0) }
        let waiting = Task {
            try await other { try await $0.collection("notes", of: Note.self).put(Note(text: "new")) }
        }
        while !StoreTicket.isAwaited(settings.folder) { try await Task.sleep(for: .milliseconds(1)) }
        let resting = (0..<2).map { _ in Task { try await app.giveWay() } }
        while await app.lending.resting < 2 { try await Task.sleep(for: .milliseconds(1)) }
        await #expect { try await Vault.resume(settings) } throws: { Self.isInUse($0) }
        if ends { await app.endStoreUse() } else { #expect(try await app.giveWay() == 1) }
        let id = try await waiting.value
        for task in resting { #expect(try await task.value == 1) }
        #expect(try await app.collection("notes", of: Note.self)[id] == Note(text: "new"))
        #expect(await app.lending.users == (ends ? 2 : 3))
        // A round that begins is behind the processes that wait, too.
        for _ in 0..<(ends ? 2 : 3) { await app.endStoreUse() }
        #expect(try await other { try await $0.ids("notes").count } == 1)
        #expect(try await app.reclaimStore() == 1)
        await app.endStoreUse()
        #expect(await app.lending.users == 0)
    }

    @Test func `rounds that rest go on when the process that waited has gone`() async throws {
        let app = try await signUp()
        for _ in 0..<2 { _ = try await app.reclaimStore() }
        var ticket = StoreTicket(in: settings.folder)
        #expect(ticket?.isFirst == true)
        let resting = Task { try await app.giveWay() }
        while await app.lending.resting == 0 { try await Task.sleep(for: .milliseconds(1)) }
        ticket = nil
        #expect(try await resting.value == 0)
        // Or when they are cancelled.
        ticket = StoreTicket(in: settings.folder)
        let cancelled = Task { try await app.giveWay() }
        while await app.lending.resting == 0 { try await Task.sleep(for: .milliseconds(1)) }
        cancelled.cancel()
        await #expect { try await cancelled.value } throws: { ($0 as? VaultError)?.isCancellation == true }
        #expect(await app.lending.resting == 0)
        withExtendedLifetime(ticket) {}
    }

    @Test func `every round learns that another process has locked the vault, and the store can be lent again`()
        async throws
    {
        let app = try await signUp()
        for _ in 0..<2 { _ = try await app.reclaimStore() }
        let waiting = Task { try await other { try await $0.lock() } }
        while !StoreTicket.isAwaited(settings.folder) { try await Task.sleep(for: .milliseconds(1)) }
        let rounds = (0..<2).map { _ in Task { try await app.giveWay() } }
        for round in rounds {
            await #expect { try await round.value } throws: { if case VaultError.locked = $0 { true } else { false } }
            await app.endStoreUse()
        }
        try await waiting.value
        #expect(await app.lending.users == 0)
        #expect(await app.lending.resting == 0)
        #expect(try await other { await $0.isLocked })
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
