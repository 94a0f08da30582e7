import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// A server that refuses keyrings, keeps them, and shows them later in the place of those that it has confirmed.
@Suite struct KeyringForkTests {
    /// What seals a keyring.
    enum Operation: CaseIterable {
        case changePassword, changeUserid, makeRecoveryCode, removeRecoveryCode, rotateKeys, recover
    }

    /// What asks the server for the keyring.
    enum Question: CaseIterable {
        case logInAgain, rotateKeys, changePassword, makeRecoveryCode
    }

    private static let password = Password("correct horse battery staple")

    /// A device, and what it has confirmed.
    private final class Person {
        let device: Device
        let server: LyingServer
        let settings: VaultSettings
        var userid: String
        var code: RecoveryCode?
        private var current: Vault?

        init(_ name: String, _ server: LiveServer, _ userid: String, isFirst: Bool) async throws {
            device = try Device(name, server)
            self.server = LyingServer(device.link)
            self.userid = userid
            var settings = device.settings
            settings.transport = self.server
            self.settings = settings
            current =
                isFirst
                ? try await Vault.signUp(settings, userid: userid, password: password)
                : try await Vault.logIn(settings, userid: userid, password: password)
        }

        var vault: Vault { get throws { try #require(current) } }

        func carryOut(_ operation: Operation) async throws {
            if operation == .recover { return try await recover() }
            let vault = try self.vault
            switch operation {
            case .changePassword: try await vault.changePassword(from: password, to: password)
            case .changeUserid: try await vault.changeUserid(to: "x" + userid, password: password)
            case .makeRecoveryCode: code = try await vault.makeRecoveryCode(password: password)
            case .removeRecoveryCode: try await vault.removeRecoveryCode(password: password)
            case .rotateKeys: try await vault.rotateKeys(password: password)
            case .recover: break
            }
        }

        private func recover() async throws {
            guard let code else { return }
            current = nil
            do {
                current = try await Vault.recover(settings, userid: userid, code: code, newPassword: password)
            } catch {
                current = try await Vault.resume(settings)
                throw error
            }
        }

        func ask(_ question: Question) async throws {
            let vault = try self.vault
            switch question {
            case .logInAgain: try await vault.logInAgain(password: password)
            case .rotateKeys: try await vault.rotateKeys(password: password)
            case .changePassword: try await vault.changePassword(from: password, to: password)
            case .makeRecoveryCode: _ = try await vault.makeRecoveryCode(password: password)
            }
        }

        /// Takes what is in force, from an honest server.
        func catchUp() async throws {
            // A recovery that was refused after it had begun has ended this session, too.
            do { try await vault.sync() } catch VaultError.sessionEnded {}
            try await vault.logInAgain(password: password)
            try await vault.sync()
            userid = try #require(try await vault.userid)
        }

        func keyring() async throws -> Keyring { try await vault.secrets().keyring }
    }

    /// The kept keyrings that are older than the one in force, or contradict it, and that the password of the device opens. A
    /// later one is what the device has sent itself and never confirmed: a server can carry out late what it has refused.
    private func forks(of person: Person) async throws -> [[UInt8]] {
        let known = try await person.keyring()
        let stretched = try await person.settings.stretching.stretch(
            Self.password, userid: person.userid, iterations: 10_000)
        return person.server.kept.filter { sealed in
            guard let keyring = try? Keyring(sealed: sealed, openedBy: stretched) else { return false }
            return keyring.digest != known.digest && keyring.counter <= known.counter
        }
    }

    /// Shows a device another keyring than the one in force, and asks for it in one of the ways.
    private func lie(_ sealed: [UInt8], to person: Person, _ question: Question, _ comment: Comment) async throws {
        let before = try await person.keyring()
        person.server.show(sealed)
        await #expect(comment) { try await person.ask(question) } throws: { error in
            if case VaultError.keyringUnusable = error { true } else { false }
        }
        #expect(person.server.hasShown, comment)
        person.server.show(nil)
        let kinds = try await person.vault.notices().map(\.kind)
        #expect(kinds.contains(.keyringRolledBack), comment)
        #expect(try await person.keyring().digest == before.digest, comment)
        try await person.catchUp()
        #expect(try await !person.vault.notices().map(\.kind).contains(.keyringRolledBack), comment)
    }

    @Test(arguments: Operation.allCases, [LyingServer.Refusal.problem, .silence])
    func `a keyring that was refused is not taken in the place of a later one`(
        _ operation: Operation, _ refusal: LyingServer.Refusal
    ) async throws {
        try await LiveServer.with { server in
            let person = try await Person("phone", server, "ada@example.org", isFirst: true)
            if operation == .recover || operation == .removeRecoveryCode {
                try await person.carryOut(.makeRecoveryCode)
            }
            for question in Question.allCases {
                person.server.refuse(refusal)
                _ = try? await person.carryOut(operation)
                person.server.refuse(nil)
                try await person.catchUp()
                try await person.vault.rotateKeys(password: Self.password)
                let forks = try await forks(of: person)
                if let fork = forks.last {
                    try await lie(fork, to: person, question, "\(operation) \(refusal) \(question)")
                } else {
                    // Only another userid is another key, which opens no keyring of the present one.
                    #expect(operation == .changeUserid)
                }
            }
        }
    }

    @Test(arguments: PropertyTests.databases)
    func `no keyring is taken in the place of another one, in any order of operations`(seed: UInt64) async throws {
        try await LiveServer.with { server in
            var random = SeededGenerator(seed: seed)
            let phone = try await Person("phone", server, "ada@example.org", isFirst: true)
            let laptop = try await Person("laptop", server, "ada@example.org", isFirst: false)
            var lies = 0
            for step in 0..<12 {
                let comment: Comment = "seed \(seed), step \(step)"
                let person = random.chance(0.5) ? phone : laptop
                let other = person === phone ? laptop : phone
                let operation = try #require(Operation.allCases.randomElement(using: &random))
                let refusal = random.chance(0.6) ? LyingServer.Refusal.allCases.randomElement(using: &random) : nil
                person.server.refuse(refusal)
                _ = try? await person.carryOut(operation)
                person.server.refuse(nil)
                try await person.catchUp()
                other.userid = person.userid
                other.code = person.code
                try await other.vault.logInAgain(password: Self.password, userid: person.userid)
                try await other.catchUp()
                #expect(try await person.keyring().digest == other.keyring().digest, comment)
                for person in [phone, laptop] {
                    let forks = try await forks(of: person)
                    guard let fork = forks.randomElement(using: &random), random.chance(0.7) else { continue }
                    let question = try #require(Question.allCases.randomElement(using: &random))
                    try await lie(fork, to: person, question, comment)
                    lies += 1
                }
            }
            #expect(lies > 0)
            try await expectOneContentForEachCounter(phone)
            try await expectOneContentForEachCounter(laptop)
        }
    }

    private func expectOneContentForEachCounter(_ person: Person) async throws {
        let stretched = try await person.settings.stretching.stretch(
            Self.password, userid: person.userid, iterations: 10_000)
        var digests: [UInt64: Set<[UInt8]>] = [:]
        for sealed in person.server.kept {
            guard let keyring = try? Keyring(sealed: sealed, openedBy: stretched) else { continue }
            digests[keyring.counter, default: []].insert(keyring.digest)
        }
        for (counter, contents) in digests { #expect(contents.count == 1, "counter \(counter)") }
    }

    @Test func `neither another keyring with the same counter nor one with a retired key is taken`() async throws {
        try await LiveServer.with { server in
            let person = try await Person("phone", server, "ada@example.org", isFirst: true)
            let stretched = try await person.settings.stretching.stretch(
                Self.password, userid: person.userid, iterations: 10_000)
            let first = try await person.keyring()
            try await person.vault.rotateKeys(password: Self.password)
            for question in Question.allCases {
                let known = try await person.keyring()
                var equal = known
                equal.dataKeys.append(.random())
                try await lie(equal.sealed(under: stretched), to: person, question, "equal counter, \(question)")
                var retired = first
                retired.counter = try await person.keyring().counter + 10
                try await lie(retired.sealed(under: stretched), to: person, question, "retired key, \(question)")
            }
        }
    }

    @Test func `a keyring that is put back after a restore has a counter of its own`() async throws {
        try await LiveServer.with { server in
            let person = try await Person("phone", server, "ada@example.org", isFirst: true)
            let old = try #require(try await server.api().getKeyring(person.vault.secrets().token)).keyring.bytes
            try await person.vault.rotateKeys(password: Self.password)
            let token = try await person.vault.secrets().token
            let now = try #require(try await server.api().getKeyring(token))
            _ = try await server.api().putKeyring(old, .revision(now.revision), token)
            person.server.refuse(.problem)
            await #expect(throws: VaultError.self) {
                try await person.vault.logInAgain(password: Self.password, restoringKeyring: true)
            }
            person.server.refuse(nil)
            try await person.vault.logInAgain(password: Self.password, restoringKeyring: true)
            try await expectOneContentForEachCounter(person)
            let counters = try await forks(of: person).count
            #expect(counters > 0)
            let refused = try #require(try await forks(of: person).last)
            try await lie(refused, to: person, .logInAgain, "put back")
        }
    }

    @Test func `the counter is on the disk before the keyring is sent`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let vault = try await Vault.signUp(device.settings, userid: "ada@example.org", password: Self.password)
            let known = try await vault.secrets().keyring.counter
            device.link.setAnswer { request in
                guard request.target == "/v1/account/credential" else { return nil }
                let body = #"{"type":"about:blank","title":"no","status":422,"code":"out_of_range"}"#
                return HTTPReply(head: HTTPReplyHead(status: 422, fields: []), body: Array(body.utf8))
            }
            for round in 1...3 {
                await #expect(throws: VaultError.self) {
                    try await vault.changePassword(from: Self.password, to: Self.password)
                }
                #expect(try await vault.sentCounter() == known + UInt64(round))
                #expect(try await vault.secrets().keyring.counter == known)
            }
        }
    }
}

extension Vault {
    fileprivate func sentCounter() throws -> UInt64 { try store.counter(.keyringSent) }
}
