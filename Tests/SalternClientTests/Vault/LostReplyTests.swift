import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What is done once, and whose reply was lost.
@Suite struct LostReplyTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func withVault(_ body: (LiveServer, Vault, Device) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            try await vault.collection("notes", of: Note.self).put(Note(text: "unsent"))
            try await body(server, vault, phone)
        }
    }

    /// So many exchanges have this fate, after some that pass; the later ones pass.
    private func set(_ fate: LossyTransport.Fate, _ count: Int, after first: Int = 0, _ link: LossyTransport) {
        let number = Mutex(0)
        link.setFate {
            number.withLock { number in
                defer { number += 1 }
                return (first..<first + count).contains(number) ? fate : .passes
            }
        }
    }

    private func expectLeft(_ vault: Vault, _ server: LiveServer) async throws {
        #expect(await vault.hasEnded)
        let again = try Device("again", server)
        await #expect { try await Vault.logIn(again.settings, userid: userid, password: password) } throws: {
            if case VaultError.wrongCredentials = $0 { true } else { false }
        }
    }

    @Test func `an account that is gone is gone here, too, though the reply was lost`() async throws {
        try await withVault { server, vault, phone in
            set(.losesReply, 1, phone.link)
            try await vault.leave(password: password, discardingUnsentEdits: true)
            try await expectLeft(vault, server)
        }
    }

    @Test func `also when no reply comes before somebody tries again`() async throws {
        try await withVault { server, vault, phone in
            set(.losesReply, phone.settings.retries.attempts, phone.link)
            await #expect { try await vault.leave(password: password, discardingUnsentEdits: true) } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
            #expect(try await vault.unsentCount() == 1)
            try await vault.leave(password: password, discardingUnsentEdits: true)
            try await expectLeft(vault, server)
        }
    }

    private func expectStaying(_ vault: Vault) async throws {
        await #expect { try await vault.leave(password: password, discardingUnsentEdits: true) } throws: {
            if case VaultError.sessionEnded = $0 { true } else { false }
        }
        #expect(try await vault.unsentCount() == 1)
    }

    @Test func `a session that has ended does not mean that the account is gone`() async throws {
        try await withVault { server, vault, phone in
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            // Nothing was lost: then the password may be another.
            try await other.endOtherSessions()
            try await expectStaying(vault)
            try await vault.logInAgain(password: password)
            // Something was lost before the server had it.
            set(.losesRequest, phone.settings.retries.attempts, phone.link)
            await #expect { try await vault.leave(password: password, discardingUnsentEdits: true) } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
            try await other.endOtherSessions()
            try await expectStaying(vault)
            try await vault.logInAgain(password: password)
            // And that is over: a password that is another by now is no account that is gone.
            try await other.changePassword(from: password, to: Password("another"))
            try await expectStaying(vault)
        }
    }

    private func expectUnavailable(_ vault: Vault) async throws {
        await #expect { try await vault.leave(password: password, discardingUnsentEdits: true) } throws: {
            if case VaultError.unavailable = $0 { true } else { false }
        }
    }

    @Test func `what never arrived, or was followed by a success, proves nothing later`() async throws {
        try await withVault { server, vault, phone in
            phone.link.setUnreachable(true)
            try await expectUnavailable(vault)
            phone.link.setUnreachable(false)
            #expect(try await vault.leaving() == nil)
            // What may have arrived has not, as the next sync shows, and the next log-in.
            set(.losesRequest, phone.settings.retries.attempts, phone.link)
            try await expectUnavailable(vault)
            #expect(try await vault.leaving() != nil)
            try await vault.sync()
            #expect(try await vault.leaving() == nil)
            set(.losesRequest, phone.settings.retries.attempts, phone.link)
            try await expectUnavailable(vault)
            try await vault.logInAgain(password: password)
            #expect(try await vault.leaving() == nil)
            try await vault.collection("notes", of: Note.self).put(Note(text: "unsent again"))
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            try await other.changePassword(from: password, to: Password("another"))
            try await expectStaying(vault)
        }
    }

    @Test func `a wrong password, or one of long ago, is no proof that the account is gone`() async throws {
        try await withVault { server, vault, phone in
            set(.losesRequest, phone.settings.retries.attempts, phone.link)
            try await expectUnavailable(vault)
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            try await other.endOtherSessions()
            await #expect { try await vault.leave(password: Password("typo"), discardingUnsentEdits: true) } throws: {
                if case VaultError.sessionEnded = $0 { true } else { false }
            }
            #expect(try await vault.unsentCount() == 1)
            // Whether another device has changed it since nobody can tell.
            try await other.changePassword(from: password, to: Password("another"))
            try await vault.setLeaving(Int64(Date().timeIntervalSince1970) - 3_700)
            try await expectStaying(vault)
        }
    }

    @Test func `edits that were not sent are not removed without being told to`() async throws {
        try await withVault { server, vault, phone in
            await #expect { try await vault.leave(password: password) } throws: {
                if case VaultError.unsentEdits(count: 1) = $0 { true } else { false }
            }
            #expect(try await vault.account().userid == userid)
            try await vault.sync()
            // One that is made while the server is asked.
            phone.link.interrupt(
                .init(exchange: 0, moment: .beforeReply) {
                    _ = try? await vault.collection("notes", of: Note.self).put(Note(text: "late"))
                })
            await #expect { try await vault.leave(password: password) } throws: {
                if case VaultError.unsentEdits(count: 1) = $0 { true } else { false }
            }
            #expect(try await vault.unsentCount() == 1)
            try await vault.leave(password: password, discardingUnsentEdits: true)
            try await expectLeft(vault, server)
        }
    }

    @Test func `a code is sent once, for the second time it would be wrong`() async throws {
        try await withVault { server, vault, phone in
            let secret = try await vault.beginSecondFactor(password: password)
            let codes = try await vault.confirmSecondFactor(code: AccountTests.code(secret.secret, at: Date()))
            let laptop = try Device("laptop", server)
            // The log-in's own reply, after that with the parameters.
            set(.losesReply, 1, after: 1, laptop.link)
            await #expect {
                try await Vault.logIn(laptop.settings, userid: userid, password: password, code: codes[0])
            } throws: { if case VaultError.unavailable = $0 { true } else { false } }
            #expect(try await vault.events().events.allSatisfy { $0.kind != "second_factor_failed" })
            _ = try await Vault.logIn(laptop.settings, userid: userid, password: password, code: codes[1])
        }
    }
}

extension Vault {
    /// See ``StoreFact/leaving``.
    fileprivate func leaving() throws -> [UInt8]? { try store.fact(.leaving) }

    fileprivate func setLeaving(_ moment: Int64) throws { try store.set(.leaving, moment) }
}
