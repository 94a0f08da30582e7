import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// A vault that is locked, signed out or left while something is under way.
@Suite struct EndingTests {
    enum Operation: CaseIterable {
        case sync, changePassword, changeUserid, makeRecoveryCode, removeRecoveryCode, rotateKeys, logInAgain
    }

    enum Ending: CaseIterable {
        case lock, signOut, leave
    }

    private static let password = Password("correct horse battery staple")
    private static let another = Password("tr0ub4dor&3")

    /// An account on a device, with a note that another device wrote and one that was not sent.
    private struct Person {
        let userid: String
        let device: Device
        let fetched: ItemID

        func begin(_ operation: Operation) async throws -> Vault {
            let vault = try await Vault.logIn(device.settings, userid: userid, password: password)
            try await vault.collection("notes", of: Note.self).put(Note(text: "unsent"))
            if operation == .removeRecoveryCode { _ = try await vault.makeRecoveryCode(password: password) }
            return vault
        }

        func carryOut(_ operation: Operation, _ vault: Vault) async throws {
            switch operation {
            case .sync: try await vault.sync()
            case .changePassword: try await vault.changePassword(from: password, to: another)
            case .changeUserid: try await vault.changeUserid(to: "new-" + userid, password: password)
            case .makeRecoveryCode: _ = try await vault.makeRecoveryCode(password: password)
            case .removeRecoveryCode: try await vault.removeRecoveryCode(password: password)
            case .rotateKeys: try await vault.rotateKeys(password: password)
            case .logInAgain: try await vault.logInAgain(password: password)
            }
        }
    }

    private func person(_ server: LiveServer, _ number: Int) async throws -> Person {
        let userid = "ada-\(number)@example.org"
        let other = try await Vault.signUp(
            Device("other", server).settings, userid: userid, password: Self.password)
        let id = try await other.collection("notes", of: Note.self).put(Note(text: "fetched"))
        try await other.sync()
        return Person(userid: userid, device: try Device("phone", server), fetched: id)
    }

    /// What has come of an operation that was interrupted.
    private struct Outcome {
        var hasSucceeded: Bool
        /// Whether the vault has ended; nil when the point was not reached.
        var hasEnded: Bool?
    }

    private func interrupt(
        _ person: Person, _ vault: Vault, _ operation: Operation, _ ending: Ending, _ exchange: Int,
        _ moment: LossyTransport.Moment
    ) async throws -> Outcome {
        let hasEnded = Mutex<Bool?>(nil)
        person.device.link.interrupt(
            .init(exchange: exchange, moment: moment) {
                let isDone: Void? =
                    switch ending {
                    case .lock: try? await vault.lock()
                    case .signOut: (try? await vault.signOut(discardingUnsentEdits: true)).map { _ in }
                    case .leave: try? await vault.leave(password: Self.password, discardingUnsentEdits: true)
                    }
                hasEnded.withLock { $0 = isDone != nil }
            })
        var hasSucceeded = true
        do { try await person.carryOut(operation, vault) } catch is VaultError { hasSucceeded = false }
        _ = person.device.link.endInterruption()
        return Outcome(hasSucceeded: hasSucceeded, hasEnded: hasEnded.withLock { $0 })
    }

    @Test(arguments: Operation.allCases)
    func `a vault that was locked while something was under way is locked, and has everything`(operation: Operation)
        async throws
    {
        try await LiveServer.with { server in
            var wasReached = true
            for exchange in 0..<40 where wasReached {
                for moment in LossyTransport.Moment.allCases where wasReached {
                    let number = exchange * 2 + (moment == .beforeReply ? 1 : 0)
                    let person = try await person(server, number)
                    let vault = try await person.begin(operation)
                    let outcome = try await interrupt(person, vault, operation, .lock, exchange, moment)
                    wasReached = outcome.hasEnded != nil
                    if !wasReached { continue }
                    let place = "exchange \(exchange), \(moment)"
                    #expect(await !vault.isOpen, "\(place)")
                    #expect(try await !vault.isKeptOpen(), "\(place)")
                    let isNew = operation == .changePassword && outcome.hasSucceeded
                    try await vault.unlock(isNew ? Self.another : Self.password)
                    try await vault.sync()
                    let texts = try await vault.collection("notes", of: Note.self).all().values.map(\.text)
                    #expect(Set(texts) == ["fetched", "unsent"], "\(place)")
                    #expect(try await vault.unsentCount() == 0, "\(place)")
                }
            }
            #expect(!wasReached)
        }
    }

    @Test(arguments: Operation.allCases, [Ending.signOut, .leave])
    func `nothing is written where everything was removed`(operation: Operation, ending: Ending) async throws {
        try await LiveServer.with { server in
            var wasReached = true
            for exchange in 0..<40 where wasReached {
                for moment in LossyTransport.Moment.allCases where wasReached {
                    let number = exchange * 2 + (moment == .beforeReply ? 1 : 0)
                    let person = try await person(server, number)
                    var vault: Vault? = try await person.begin(operation)
                    let outcome = try await interrupt(
                        person, #require(vault), operation, ending, exchange, moment)
                    vault = nil
                    wasReached = outcome.hasEnded != nil
                    // A password that was changed meanwhile ends nothing.
                    guard outcome.hasEnded == true else { continue }
                    try expectNothing(in: person.device.folder.path, "exchange \(exchange), \(moment)")
                }
            }
            #expect(!wasReached)
        }
    }

    private func expectNothing(in folder: String, _ place: String) throws {
        #expect(!FileManager.default.fileExists(atPath: folder + "/device.key"), "\(place)")
        let database = try SQLiteDatabase(path: folder + "/store.sqlite")
        let tables = try database.rows("SELECT name FROM sqlite_schema WHERE type = 'table'") { $0.text(0) ?? "" }
        #expect(tables.count > 4)
        for table in tables where !table.hasPrefix("sqlite") {
            let count = try database.rows("SELECT count(*) FROM \(table)") { $0.integer(0) ?? 0 }
            #expect(count == [0], "\(place): \(table)")
        }
    }

    @Test func `who logs in where somebody has signed out during a sync gets everything`() async throws {
        try await LiveServer.with { server in
            let person = try await person(server, 1)
            let vault = try await person.begin(.sync)
            let outcome = try await interrupt(person, vault, .sync, .signOut, 0, .beforeReply)
            #expect(outcome.hasEnded == true && !outcome.hasSucceeded)
            // While the other one is still there, too.
            let next = try await Vault.logIn(person.device.settings, userid: person.userid, password: Self.password)
            try await next.sync()
            #expect(try await next.collection("notes", of: Note.self)[person.fetched] == Note(text: "fetched"))
            await #expect { try await vault.sync() } throws: { if case VaultError.locked = $0 { true } else { false } }
            try await vault.signOut()
            try await vault.lock()
            #expect(try await next.unsentCount() == 0)
        }
    }

    @Test func `what is written during signing out is not taken and lost`() async throws {
        try await LiveServer.with { server in
            let person = try await person(server, 1)
            let vault = try await Vault.logIn(person.device.settings, userid: person.userid, password: Self.password)
            let isTaken = Mutex(false)
            person.device.link.interrupt(
                .init(exchange: 0, moment: .beforeRequest) {
                    let id = try? await vault.collection("notes", of: Note.self).put(Note(text: "late"))
                    isTaken.withLock { $0 = id != nil }
                })
            var hasSignedOut = true
            do { try await vault.signOut() } catch VaultError.unsentEdits { hasSignedOut = false }
            #expect(person.device.link.endInterruption() == nil)
            #expect(hasSignedOut != isTaken.withLock { $0 })
        }
    }

    @Test(.timeLimit(.minutes(60))) func `a silent server does not keep anything on the device`() async throws {
        try await LiveServer.with { server in
            let person = try await person(server, 1)
            var settings = person.device.settings
            settings.signOutPatience = .milliseconds(100)
            let vault = try await Vault.logIn(settings, userid: person.userid, password: Self.password)
            let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
            person.device.link.interrupt(
                .init(exchange: 0, moment: .beforeRequest) {
                    continuation.yield()
                    try? await Task.sleep(for: .seconds(3_600))
                })
            let ending = Task { try await vault.signOut() }
            for await _ in asked { break }
            try expectNothing(in: person.device.folder.path, "silent")
            // Nobody waits for it for long.
            #expect(try await ending.value == .left)
            settings.signOutPatience = .seconds(180)
            let again = try await Vault.logIn(settings, userid: person.userid, password: Self.password)
            #expect(try await again.signOut() == .ended)
        }
    }

    @Test func `a vault that is locked while it is unlocked stays locked`() async throws {
        try await LiveServer.with { server in
            let person = try await person(server, 1)
            var settings = person.device.settings
            let (deriving, begins) = AsyncStream.makeStream(of: Void.self)
            let (ending, ends) = AsyncStream.makeStream(of: Void.self)
            let waits = Mutex(false)
            let derivation = settings.stretching.derivation
            settings.stretching.derivation = { secret, salt, iterations in
                if waits.withLock({ $0 }) {
                    begins.yield()
                    for await _ in ending { break }
                }
                return await derivation(secret, salt, iterations)
            }
            let vault = try await Vault.logIn(settings, userid: person.userid, password: Self.password)
            try await vault.lock()
            waits.withLock { $0 = true }
            let unlocking = Task { try await vault.unlock(Self.password) }
            for await _ in deriving { break }
            try await vault.lock()
            waits.withLock { $0 = false }
            ends.yield()
            await #expect { try await unlocking.value } throws: {
                if case VaultError.locked = $0 { true } else { false }
            }
            #expect(await !vault.isOpen)
            try await vault.unlock(Self.password)
            #expect(await vault.isOpen)
        }
    }
}

extension Vault {
    var isOpen: Bool { opened != nil }
    var hasEnded: Bool { store.isClosed }
    /// Whether the keys are on the disk, to be had without the password.
    func isKeptOpen() throws -> Bool { try keptOpen() != nil }
}
