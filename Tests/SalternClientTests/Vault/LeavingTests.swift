import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Which password proves that an account was deleted, while nobody here knows which one is in force.
@Suite struct LeavingTests {
    private let userid = "ada@example.org"
    private static let old = Password("correct horse battery staple")
    private static let new = Password("another")

    /// The password was changed, and its reply was lost.
    private func withLostReply(_ body: (LiveServer, Device, Vault) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: Self.old)
            try await vault.collection("notes", of: Note.self).put(Note(text: "kept"))
            try await vault.sync()
            let count = Mutex(0)
            phone.link.setFate {
                let number = count.withLock { count in
                    defer { count += 1 }
                    return count
                }
                return number < 2 ? .passes : .losesReply
            }
            await #expect(throws: VaultError.self) {
                try await vault.changePassword(from: Self.old, to: Self.new)
            }
            phone.link.setFate { .passes }
            try await body(server, phone, vault)
        }
    }

    /// Leaves while a sync is under way, which would find out which password is in force, and does not come to it.
    private func leaveWithinSync(
        _ vault: Vault, _ phone: Device, _ password: Password, _ fate: LossyTransport.Fate
    ) async throws -> VaultError? {
        let outcome = Mutex<VaultError?>(nil)
        phone.link.interrupt(
            LossyTransport.Interruption(exchange: 0, moment: .beforeRequest) {
                phone.link.setFate { fate }
                do throws(VaultError) { try await vault.leave(password: password) } catch {
                    outcome.withLock { $0 = error }
                }
                phone.link.setFate { .losesRequest }
            })
        phone.link.setFate { .losesRequest }
        await #expect(throws: VaultError.self) { try await vault.sync() }
        #expect(phone.link.endInterruption() == nil)
        phone.link.setFate { .passes }
        return outcome.withLock { $0 }
    }

    private func isSessionEnded(_ error: (any Error)?) -> Bool {
        if case VaultError.sessionEnded? = error { true } else { false }
    }

    @Test func `the password of before proves nothing where the account is there with another one`() async throws {
        try await withLostReply { server, phone, vault in
            let lost = try await leaveWithinSync(vault, phone, Self.old, .losesRequest)
            #expect(lost != nil)
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: Self.new)
            try await other.endOtherSessions()
            let error = try await leaveWithinSync(vault, phone, Self.old, .passes)
            #expect(isSessionEnded(error))
            #expect(await !vault.hasEnded)
            #expect(try await vault.collection("notes", of: Note.self).all().count == 1)
            #expect(try await other.account().usage.items == 1)
        }
    }

    @Test(arguments: [true, false])
    func `once it is known which one holds, only that one proves`(isGone: Bool) async throws {
        try await withLostReply { server, phone, vault in
            try await vault.sync()
            phone.link.setFate { isGone ? .losesReply : .losesRequest }
            await #expect(throws: VaultError.self) { try await vault.leave(password: Self.new) }
            phone.link.setFate { .passes }
            if !isGone {
                let laptop = try Device("laptop", server)
                let other = try await Vault.logIn(laptop.settings, userid: userid, password: Self.new)
                try await other.endOtherSessions()
            }
            await #expect { try await vault.leave(password: Self.old) } throws: { isSessionEnded($0) }
            #expect(await !vault.hasEnded)
            if isGone {
                try await vault.leave(password: Self.new)
            } else {
                await #expect { try await vault.leave(password: Self.new) } throws: { isSessionEnded($0) }
            }
            #expect(await vault.hasEnded == isGone)
        }
    }

    @Test func `an account that is gone is found to be so, though nobody knows which password it had`() async throws {
        try await withLostReply { _, phone, vault in
            let lost = try await leaveWithinSync(vault, phone, Self.new, .losesReply)
            #expect(lost != nil)
            #expect(await !vault.hasEnded)
            await #expect { try await vault.leave(password: Password("a third one")) } throws: { isSessionEnded($0) }
            try await vault.leave(password: Self.new)
            #expect(await vault.hasEnded)
        }
    }
}
