import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Changes of userid, password and printed code whose end nobody has seen.
@Suite struct UnconfirmedChangeTests {
    enum Change: CaseIterable {
        case userid, password
    }

    private struct Credential: Equatable {
        var userid = "ada@example.org"
        var word = "correct horse battery staple"

        var password: Password { Password(word) }

        func changed(_ change: Change, _ number: Int) -> Credential {
            switch change {
            case .userid: Credential(userid: "ada-\(number)@example.org", word: word)
            case .password: Credential(userid: userid, word: "password \(number)")
            }
        }
    }

    private func carryOut(_ change: Change, _ vault: Vault?, _ old: Credential, _ new: Credential) async throws {
        switch change {
        case .userid: try await vault?.changeUserid(to: new.userid, password: old.password)
        case .password: try await vault?.changePassword(from: old.password, to: new.password)
        }
    }

    /// The one with which one can log in, also where the vault is locked.
    private func inForce(
        _ candidates: [Credential], _ vault: Vault, _ server: LiveServer, _ id: ItemID
    ) async throws -> Credential {
        var valid: [Credential] = []
        for candidate in candidates {
            let device = try Device("new", server)
            do {
                let other = try await Vault.logIn(
                    device.settings, userid: candidate.userid, password: candidate.password)
                try await other.sync()
                #expect(try await other.collection("notes", of: Note.self)[id] == Note(text: "kept"))
                valid.append(candidate)
            } catch VaultError.wrongCredentials, VaultError.untrustworthy {
                // A server makes up parameters for a userid that nobody has.
            }
        }
        let credential = try #require(valid.first)
        #expect(valid.count == 1)
        #expect(try await vault.userid == credential.userid)
        try await vault.lock()
        try await vault.unlock(credential.password)
        // With the server it has to be the same: a wrong one would be refused.
        try await vault.sync()
        _ = try await vault.makeRecoveryCode(password: credential.password)
        return credential
    }

    /// A change was done, and its reply was lost.
    private func withLostReply(
        _ change: Change, _ body: (Vault, Device, _ old: Credential, _ new: Credential) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let (old, new) = (Credential(), Credential().changed(change, 1))
            let vault = try await Vault.signUp(phone.settings, userid: old.userid, password: old.password)
            set(.losesReply, from: 2, isOnly: false, phone.link)
            await #expect(throws: VaultError.self) { try await carryOut(change, vault, old, new) }
            phone.link.setFate { .passes }
            try await body(vault, phone, old, new)
        }
    }

    /// Exchanges have this fate from one of them on; or only that one.
    private func set(_ fate: LossyTransport.Fate, from exchange: Int, isOnly: Bool, _ link: LossyTransport) {
        let count = Mutex(0)
        link.setFate {
            let number = count.withLock { count in
                defer { count += 1 }
                return count
            }
            return number < exchange || isOnly && number > exchange ? .passes : fate
        }
    }

    @Test(
        arguments: Change.allCases,
        [LossyTransport.Fate.losesRequest, .losesReply, .arrivesLate])
    func `interrupted at any exchange, the next sync finds out what is true`(
        _ change: Change, _ fate: LossyTransport.Fate
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var now = Credential()
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: now.userid, password: now.password)
            let id = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "kept")))
            try await vault?.sync()
            var outcomes: Set<Bool> = []
            for exchange in 0..<5 {
                let next = now.changed(change, exchange)
                set(fate, from: exchange, isOnly: false, phone.link)
                var isDone = true
                do { try await carryOut(change, vault, now, next) } catch VaultError.unavailable { isDone = false }
                phone.link.setFate { .passes }
                if exchange.isMultiple(of: 2) {
                    vault = nil
                    vault = try await Vault.resume(phone.settings)
                }
                try await vault?.sync()
                // What comes only now changes nothing any more.
                await phone.link.deliverLate()
                let credential = try await inForce([now, next], #require(vault), server, id)
                #expect(!isDone || credential == next)
                #expect(try await vault?.isSettled == true)
                outcomes.insert(credential == next)
                now = credential
            }
            #expect(outcomes == [true, false])
        }
    }

    @Test(arguments: Change.allCases)
    func `a change whose replies were lost is done when that is found out at once`(_ change: Change) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let (old, new) = (Credential(), Credential().changed(change, 1))
            let vault = try await Vault.signUp(phone.settings, userid: old.userid, password: old.password)
            let id = try await vault.collection("notes", of: Note.self).put(Note(text: "kept"))
            try await vault.sync()
            let lost = Mutex(0)
            let attempts = phone.settings.retries.attempts
            phone.link.setRewrite { request, reply in
                guard request.method == .put, request.target != "/v1/account/keyring" else { return reply }
                let isLost = lost.withLock { lost in
                    lost += 1
                    return lost <= attempts
                }
                let problem = #"{"type":"about:blank","title":"No","status":503,"code":"unavailable"}"#
                return isLost
                    ? HTTPReply(head: HTTPReplyHead(status: 503, fields: []), body: Array(problem.utf8)) : reply
            }
            try await carryOut(change, vault, old, new)
            #expect(lost.withLock { $0 } == attempts)
            #expect(try await inForce([old, new], vault, server, id) == new)
        }
    }

    /// The reply is lost, and with it the network, until the session has ended.
    @Test(arguments: [true, false], [LossyTransport.Fate.losesRequest, .losesReply])
    func `a new log-in needs no userid but the one that is known`(
        isLocked: Bool, fate: LossyTransport.Fate
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let (old, new) = (Credential(), Credential().changed(.userid, 1))
            let vault = try await Vault.signUp(phone.settings, userid: old.userid, password: old.password)
            let id = try await vault.collection("notes", of: Note.self).put(Note(text: "kept"))
            try await vault.sync()
            let token = try await vault.secrets().token
            // After the service's parameters and the keyring.
            set(fate, from: 2, isOnly: false, phone.link)
            await #expect { try await carryOut(.userid, vault, old, new) } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
            phone.link.setFate { .passes }
            let unsent = try await vault.collection("notes", of: Note.self).put(Note(text: "unsent"))
            try await server.api().endCurrentSession(token)
            if isLocked {
                try await vault.lock()
            } else {
                await #expect { try await vault.sync() } throws: {
                    if case VaultError.sessionEnded = $0 { true } else { false }
                }
            }
            try await vault.logInAgain(password: old.password)
            try await vault.sync()
            #expect(try await vault.collection("notes", of: Note.self)[unsent] == Note(text: "unsent"))
            #expect(try await inForce([old, new], vault, server, id) == (fate == .losesReply ? new : old))
            #expect(try await vault.isSettled)
        }
    }

    @Test(arguments: Change.allCases)
    func `killed at any call of its store it goes on with what is true`(_ change: Change) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            try phone.beginLife()
            defer { phone.endLives() }
            var now = Credential()
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: now.userid, password: now.password)
            let id = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "kept")))
            try await vault?.sync()
            var (kills, done) = (0, 0)
            for call in 1..<80 {
                let next = now.changed(change, call)
                phone.life.arm([.killBefore, .killAfter][call % 2], at: call)
                do { try await carryOut(change, vault, now, next) } catch let error as VaultError {
                    guard phone.life.hasEnded else { throw error }
                }
                guard phone.life.hasEnded else { break }
                kills += 1
                vault = nil
                try phone.beginLife()
                vault = try await Vault.resume(phone.settings)
                try await vault?.sync()
                let credential = try await inForce([now, next], #require(vault), server, id)
                if credential == next { done += 1 }
                now = credential
            }
            #expect(kills > 5 && done > 0 && done < kills)
        }
    }

    @Test func `what needs the password takes that of the change that was done`() async throws {
        try await withLostReply(.userid) { vault, phone, old, new in
            // Its secret is sealed for the person of the new userid.
            _ = try await vault.beginSecondFactor(password: old.password)
            #expect(try await vault.userid == new.userid)
            set(.losesReply, from: 2, isOnly: false, phone.link)
            let third = new.changed(.userid, 2)
            await #expect(throws: VaultError.self) { try await carryOut(.userid, vault, new, third) }
            phone.link.setFate { .passes }
            // The same once more is done already; a wrong password is one all the same.
            await #expect { try await vault.changeUserid(to: third.userid, password: Password("typo")) } throws: {
                if case VaultError.wrongCredentials = $0 { true } else { false }
            }
            #expect(try await vault.userid == third.userid)
        }
    }

    @Test func `the same change of the userid once more is a success`() async throws {
        try await withLostReply(.userid) { vault, phone, old, new in
            try await carryOut(.userid, vault, old, new)
            #expect(try await vault.userid == new.userid)
        }
    }

    @Test(arguments: [LossyTransport.Fate.losesRequest, .losesReply, .arrivesLate])
    func `a code that was made and never shown is told of, and one that was not made leaves the old one`(
        fate: LossyTransport.Fate
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let old = Credential()
            let vault = try await Vault.signUp(phone.settings, userid: old.userid, password: old.password)
            let printed = try await vault.makeRecoveryCode(password: old.password)
            // After the keyring.
            set(fate, from: 1, isOnly: false, phone.link)
            await #expect { try await vault.makeRecoveryCode(password: old.password) } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
            phone.link.setFate { .passes }
            try await vault.sync()
            await phone.link.deliverLate()
            #expect(try await vault.notices().map(\.kind) == (fate == .losesReply ? [.recoveryRemoved] : []))
            #expect(try await vault.isSettled)
            let device = try Device("recovered", server)
            let recover = {
                try await Vault.recover(
                    device.settings, userid: old.userid, code: printed, newPassword: Password("another"))
            }
            if fate == .losesReply {
                await #expect { try await recover() } throws: {
                    if case VaultError.wrongCredentials = $0 { true } else { false }
                }
                // One that is shown is all that somebody has to know.
                set(.losesReply, from: 1, isOnly: true, phone.link)
                let code = try await vault.makeRecoveryCode(password: old.password)
                _ = try await Vault.recover(
                    device.settings, userid: old.userid, code: code, newPassword: Password("another"))
            } else {
                _ = try await recover()
            }
        }
    }

    @Test func `what is noted of a change opens nothing while the vault is locked`() async throws {
        try await withLostReply(.password) { vault, phone, old, new in
            let rule = phone.settings.stretching
            let other = try await rule.stretch(Password("other"), userid: old.userid, iterations: 10_000)
            let known = try await rule.stretch(old.password, userid: old.userid, iterations: 10_000)
            let sent = try await rule.stretch(new.password, userid: old.userid, iterations: 10_000)
            guard case .credential(let credential)? = try await vault.unconfirmedChange()?.outcome else {
                Issue.record("nothing is noted")
                return
            }
            #expect(try await vault.password(of: credential, under: other.known) == nil)
            #expect(try await vault.password(of: credential, under: known.known)?.matches(sent) == true)
            try await vault.lock()
            try await vault.unlock(old.password)
            try await vault.sync()
            try await vault.lock()
            try await vault.unlock(new.password)
        }
    }
}

extension Vault {
    fileprivate var isSettled: Bool { get throws { try unconfirmedChange() == nil } }
}
