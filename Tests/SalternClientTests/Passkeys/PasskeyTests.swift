import Cryptography
import SalternTesting
import SoftwarePasskeys
import Synchronization
import Testing

@testable import SalternClient

/// Passkeys of an account with two devices, on a real server.
@Suite struct PasskeyTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")
    private let another = Password("tr0ub4dor&3")

    static let settings = [
        "SALTERN_PASSKEYS_RP_ID": "localhost", "SALTERN_PASSKEYS_ORIGINS": "https://localhost",
    ]

    private struct World {
        let server: LiveServer
        let phone: Device
        let vault: Vault
        let key = SoftwareAuthenticator()

        /// The text of the only note on another device, which the passkey alone opens.
        func noteElsewhere(_ authenticator: SoftwareAuthenticator? = nil) async throws -> String? {
            let laptop = try Device("laptop", server)
            let vault = try await Vault.logIn(laptop.settings, passkey: authenticator ?? key)
            try await vault.sync()
            return try await vault.collection("notes", of: Note.self).all().values.first?.text
        }
    }

    /// A device whose account has one note.
    private func with(_ body: (World) async throws -> Void) async throws {
        try await LiveServer.with(Self.settings) { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            try await vault.collection("notes", of: Note.self).put(Note(text: "Buy salt."))
            try await vault.sync()
            try await body(World(server: server, phone: phone, vault: vault))
        }
    }

    private func expect(_ expected: @Sendable (VaultError) -> Bool, _ body: () async throws -> Void) async {
        await #expect { try await body() } throws: { ($0 as? VaultError).map(expected) ?? false }
    }

    @Test func `a passkey is a second factor, and is listed, renamed and removed`() async throws {
        try await with { world in
            let vault = world.vault
            let added = try await vault.addPasskey("Key", unlocks: false, password: password, with: world.key)
            #expect(!added.unlocks && !added.logsIn && added.algorithm == -7)
            #expect(try await vault.secrets().keyring.passkeys.isEmpty)
            let laptop = try Device("laptop", world.server)
            await expect({ if case .passkeyRequired(orCode: false) = $0 { true } else { false } }) {
                _ = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            }
            _ = try await Vault.logIn(laptop.settings, userid: userid, password: password, passkey: world.key)
            let tablet = try Device("tablet", world.server)
            await expect({ if case .passkey(.noPasskey) = $0 { true } else { false } }) {
                _ = try await Vault.logIn(
                    tablet.settings, userid: userid, password: password, passkey: SoftwareAuthenticator())
            }
            try await vault.renamePasskey(added.id, to: "Blue key")
            #expect(try await vault.passkeys().map(\.name) == ["Blue key"])
            await expect({ if case .passkey(.exists) = $0 { true } else { false } }) {
                try await vault.addPasskey("Again", unlocks: false, password: password, with: world.key)
            }
            await expect({ if case .wrongCredentials = $0 { true } else { false } }) {
                try await vault.removePasskey(added.id, password: another)
            }
            try await vault.removePasskey(added.id, password: password)
            #expect(try await vault.passkeys().isEmpty)
            _ = try await Vault.logIn(tablet.settings, userid: userid, password: password)
        }
    }

    @Test func `a passkey that unlocks opens the items without userid and password`() async throws {
        try await with { world in
            let added = try await world.vault.addPasskey(
                "Key", unlocks: true, password: password, with: world.key)
            #expect(added.unlocks && added.logsIn)
            #expect(try await world.noteElsewhere() == "Buy salt.")
            let laptop = try Device("laptop", world.server)
            let vault = try await Vault.logIn(laptop.settings, passkey: world.key)
            #expect(try await vault.userid == userid)
            // What needs the password works there, too.
            try await vault.lock()
            await expect({ if case .wrongCredentials = $0 { true } else { false } }) { try await vault.unlock(another) }
            try await vault.unlock(password)
            try await vault.lock()
            try await vault.logInAgain(passkey: world.key)
            #expect(await !vault.isLocked)
            await expect({ if case .wrongCredentials = $0 { true } else { false } }) {
                try await vault.rotateKeys(password: another)
            }
            try await vault.rotateKeys(password: password)
            #expect(try await world.noteElsewhere() == "Buy salt.")
            try await vault.removePasskey(added.id, password: password)
            await expect({ if case .wrongPasskey = $0 { true } else { false } }) { _ = try await world.noteElsewhere() }
        }
    }

    @Test func `changes of password, userid, code and data keys leave it working`() async throws {
        try await with { world in
            let vault = world.vault
            let second = SoftwareAuthenticator()
            try await vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let code = try await vault.makeRecoveryCode(password: password)
            try await vault.addPasskey("Spare", unlocks: true, password: password, with: second)
            #expect(try await vault.passkeys().map(\.unlocks) == [true, true])
            let steps: [(String, () async throws -> Void)] = [
                ("password", { try await vault.changePassword(from: password, to: another) }),
                ("userid", { try await vault.changeUserid(to: "ada@example.net", password: another) }),
                ("rotation", { try await vault.rotateKeys(password: another) }),
                ("code", { _ = try await vault.makeRecoveryCode(password: another) }),
                ("no code", { try await vault.removeRecoveryCode(password: another) }),
            ]
            for (name, step) in steps {
                try await step()
                for key in [world.key, second] { #expect(try await world.noteElsewhere(key) == "Buy salt.", "\(name)") }
            }
            _ = code
        }
    }

    @Test func `a recovery by the printed code leaves it working`() async throws {
        try await with { world in
            let code = try await world.vault.makeRecoveryCode(password: password)
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let laptop = try Device("laptop", world.server)
            let vault = try await Vault.recover(
                laptop.settings, userid: userid, code: code, newPassword: another, passkey: world.key)
            #expect(try await vault.secrets().keyring.passkeys.count == 1)
            #expect(try await world.noteElsewhere() == "Buy salt.")
        }
    }

    /// Raises the server's iterations, and logs in on a new device, which raises those of the account.
    private func logInWithRaisedIterations(_ world: World) async throws -> Vault {
        try await world.server.restart(
            timeout: .seconds(10),
            ["SALTERN_KDF_MINIMUM_ITERATIONS": "12000", "SALTERN_KDF_DEFAULT_ITERATIONS": "14000"])
        let laptop = try Device("laptop", world.server)
        let vault = try await Vault.logIn(laptop.settings, userid: userid, password: password, passkey: world.key)
        #expect(try await vault.knownIterations() == 14_000)
        return vault
    }

    @Test func `raised iterations leave it working`() async throws {
        try await with { world in
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            _ = try await logInWithRaisedIterations(world)
            #expect(try await world.noteElsewhere() == "Buy salt.")
        }
    }

    @Test func `a passkey without PRF is not kept as one that unlocks`() async throws {
        try await with { world in
            var faults = SoftwareAuthenticator.Faults()
            faults.hasNoOutput = true
            world.key.set(faults)
            await expect({ if case .passkey(.doesNotUnlock) = $0 { true } else { false } }) {
                try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            }
            #expect(try await world.vault.passkeys().isEmpty)
            try await world.vault.addPasskey("Key", unlocks: false, password: password, with: SoftwareAuthenticator())
        }
    }

    /// As after an interruption between the two requests of ``Vault/addPasskey(_:unlocks:password:with:)``.
    @Test func `keys whose passkey has no box do not stop a change of the password`() async throws {
        try await with { world in
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            world.phone.link.setAnswer { request in
                if request.target.hasSuffix("/box") || request.method == .delete {
                    HTTPReply(
                        head: HTTPReplyHead(status: 422, fields: []),
                        body: Array(#"{"type":"about:blank","title":"no","status":422,"code":"no"}"#.utf8))
                } else {
                    nil
                }
            }
            await expect({ if case .refused = $0 { true } else { false } }) {
                try await world.vault.addPasskey(
                    "Half", unlocks: true, password: password, with: SoftwareAuthenticator())
            }
            world.phone.link.setAnswer { _ in nil }
            #expect(try await world.vault.passkeys().map(\.unlocks) == [true, false])
            #expect(try await world.vault.secrets().keyring.passkeys.count == 2)
            try await world.vault.changePassword(from: password, to: another)
            try await world.vault.rotateKeys(password: another)
            #expect(try await world.noteElsewhere() == "Buy salt.")
        }
    }

    /// Another client has added it, and its public half is not in the keyring.
    private func addForeignPasskey(
        _ name: String, _ vault: Vault, _ password: Password? = nil
    ) async throws -> PasskeyDescription {
        let proof = try await vault.stretch(password ?? self.password, userid, vault.knownIterations()).passwordKey
        let token = try await vault.secrets().token
        let options = try await vault.api.beginPasskey(logsIn: true, currentPasswordKey: proof, token)
        let passkey = try await vault.api.confirmPasskey(
            SoftwareAuthenticator().create(options), name: name, logsIn: true, currentPasswordKey: proof, token)
        try await vault.api.putPasskeyBox(
            passkey.id.bytes, sealedPrivateKey: [1], box: [2], currentPasswordKey: proof, token)
        return passkey
    }

    @Test func `a passkey of another client stops unlocking with a new password, and the others do not`() async throws {
        try await with { world in
            let vault = world.vault
            try await vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let foreign = [try await addForeignPasskey("A", vault), try await addForeignPasskey("B", vault)]
            #expect(try await vault.passkeys().map(\.unlocks) == [true, true, true])
            try await vault.changePassword(from: password, to: another)
            #expect(try await vault.passkeys().map(\.unlocks) == [true, false, false])
            let notice = try #require(try await vault.notices().first)
            #expect(notice.kind == .passkeysStoppedUnlocking && Set(notice.passkeys) == Set(foreign.map(\.id)))
            #expect(try await world.noteElsewhere() == "Buy salt.")
            try await vault.rotateKeys(password: another)
            #expect(try await vault.notices().count == 1)
        }
    }

    private static func problem(_ status: Int, _ code: String, _ more: String = "") -> HTTPReply {
        let text = #"{"type":"about:blank","title":"no","status":\#(status),"code":"\#(code)"\#(more)}"#
        return HTTPReply(head: HTTPReplyHead(status: status, fields: []), body: Array(text.utf8))
    }

    private static func isCredential(_ request: HTTPRequest, removingBox: Bool) -> Bool {
        guard request.target == "/v1/account/credential" else { return false }
        let body = request.body?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } ?? ""
        return body.contains(#""box":null"#) == removingBox
    }

    @Test(arguments: [[422], [503, 422]])
    func `a refused change stops no passkey, and each that a later one stops is reported`(
        _ statuses: [Int]
    ) async throws {
        try await with { world in
            let vault = world.vault
            let first = try await addForeignPasskey("A", vault)
            try await vault.changePassword(from: password, to: another)
            let before = try await vault.notices()
            #expect(before.map(\.passkeys) == [[first.id]])
            let second = try await addForeignPasskey("B", vault, another)
            let left = Mutex(statuses)
            world.phone.link.setAnswer { request in
                guard Self.isCredential(request, removingBox: true), let next = left.withLock({ $0.first }) else {
                    return nil
                }
                _ = left.withLock { $0.removeFirst() }
                return Self.problem(next, "no")
            }
            await expect({ if case .refused = $0 { true } else { false } }) {
                try await vault.changePassword(from: another, to: password)
            }
            #expect(left.withLock { $0 }.isEmpty)
            #expect(try await vault.notices() == before)
            #expect(try await vault.passkeys().map(\.unlocks) == [false, true])
            try await vault.changePassword(from: another, to: password)
            let after = try await vault.notices()
            #expect(after.map(\.passkeys) == [[first.id, second.id]])
            #expect(try #require(after.first).number > #require(before.first).number)
        }
    }

    @Test func `a passkey of another client does not stop a raise of the iterations`() async throws {
        try await with { world in
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let foreign = try await addForeignPasskey("A", world.vault)
            let vault = try await logInWithRaisedIterations(world)
            #expect(try await vault.notices().map(\.passkeys) == [[foreign.id]])
            #expect(try await vault.passkeys().map(\.unlocks) == [true, false])
            #expect(try await world.noteElsewhere() == "Buy salt.")
        }
    }

    /// More than an account can have, and an id that no authenticator makes.
    @Test(arguments: [(21, 16), (1, 1_024), (1, 0)])
    func `a server that names impossible passkeys gets no second request`(_ count: Int, _ length: Int) async throws {
        try await with { world in
            let ids = (0..<count).map { Base64URL.encodeToString([UInt8](repeating: UInt8($0), count: length)) }
            let list = ids.map { #""\#($0)""# }.joined(separator: ",")
            let descriptors = ids.map { #"{"type":"public-key","id":"\#($0)"}"# }.joined(separator: ",")
            let requests = Mutex(0)
            world.phone.link.setAnswer { request in
                guard request.target == "/v1/account/credential" else { return nil }
                requests.withLock { $0 += 1 }
                return Self.problem(428, "passkey_boxes_required", #","passkeys":[\#(list)]"#)
            }
            await expect({ if case .refused(let problem) = $0 { problem.status == 428 } else { false } }) {
                try await world.vault.changePassword(from: password, to: another)
            }
            #expect(requests.withLock { $0 } == 1)
            let notices = try await world.vault.notices()
            #expect(notices.isEmpty)
            // In the options of a log-in, too.
            world.phone.link.setRewrite { request, reply in
                let text = String(decoding: reply.body, as: UTF8.self)
                    .replacing(#""allowCredentials":[]"#, with: #""allowCredentials":[\#(descriptors)]"#)
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            await expect({ if case .unavailable(.unexpectedReply) = $0 { true } else { false } }) {
                try await world.vault.logInAgain(passkey: world.key)
            }
        }
    }

    @Test func `a passkey of another client does not stop a recovery by the printed code`() async throws {
        try await with { world in
            let code = try await world.vault.makeRecoveryCode(password: password)
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let foreign = try await addForeignPasskey("A", world.vault)
            let laptop = try Device("laptop", world.server)
            let vault = try await Vault.recover(
                laptop.settings, userid: userid, code: code, newPassword: another, passkey: world.key)
            #expect(try await vault.notices().map(\.passkeys) == [[foreign.id]])
            #expect(try await vault.passkeys().map(\.unlocks) == [true, false])
            #expect(try await world.noteElsewhere() == "Buy salt.")
        }
    }

    @Test func `a passkey can stop unlocking, and stays a second factor`() async throws {
        try await with { world in
            let vault = world.vault
            let second = SoftwareAuthenticator()
            let added = try await vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            try await vault.addPasskey("Spare", unlocks: true, password: password, with: second)
            await expect({ if case .wrongCredentials = $0 { true } else { false } }) {
                try await vault.stopPasskeyUnlocking(added.id, password: another)
            }
            for _ in 0..<2 { try await vault.stopPasskeyUnlocking(added.id, password: password) }
            #expect(try await vault.passkeys().map(\.unlocks) == [false, true])
            #expect(try await vault.secrets().keyring.passkeys.count == 1)
            await expect({ if case .passkey(.doesNotUnlock) = $0 { true } else { false } }) {
                _ = try await world.noteElsewhere()
            }
            try await vault.changePassword(from: password, to: another)
            #expect(try await vault.notices().isEmpty)
            #expect(try await world.noteElsewhere(second) == "Buy salt.")
            let laptop = try Device("laptop", world.server)
            _ = try await Vault.logIn(laptop.settings, userid: userid, password: another, passkey: world.key)
        }
    }

    @Test func `two devices add a passkey at the same time, and both unlock after a new password`() async throws {
        try await with { world in
            let laptop = try Device("laptop", world.server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let (phone, key, second) = (world.vault, world.key, SoftwareAuthenticator())
            async let first = phone.addPasskey("Key", unlocks: true, password: password, with: key)
            async let last = other.addPasskey("Spare", unlocks: true, password: password, with: second)
            _ = try await (first, last)
            #expect(try await other.passkeys().map(\.unlocks) == [true, true])
            try await other.changePassword(from: password, to: another)
            #expect(try await other.notices().isEmpty)
            for key in [world.key, second] { #expect(try await world.noteElsewhere(key) == "Buy salt.") }
        }
    }

    @Test func `the twenty-first passkey is refused, and the twenty unlock after a new password`() async throws {
        try await with { world in
            let vault = world.vault
            try await vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            var last = SoftwareAuthenticator()
            for number in 2...PasskeyKeys.limit {
                last = SoftwareAuthenticator()
                try await vault.addPasskey("Key \(number)", unlocks: true, password: password, with: last)
            }
            await expect({ if case .refused(let problem) = $0 { problem.code == "too_many_passkeys" } else { false } })
            {
                try await vault.addPasskey("21", unlocks: true, password: password, with: SoftwareAuthenticator())
            }
            #expect(try await vault.passkeys().count == PasskeyKeys.limit)
            try await vault.changePassword(from: password, to: another)
            for key in [world.key, last] { #expect(try await world.noteElsewhere(key) == "Buy salt.") }
        }
    }

    @Test func `a log-in whose request or reply is lost asks once, and opens one session at most`() async throws {
        try await with { world in
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            for (number, fate) in [LossyTransport.Fate.losesRequest, .losesReply].enumerated() {
                let laptop = try Device("laptop-\(number)", world.server)
                // The second exchange is the log-in.
                let exchanges = Mutex(0)
                laptop.link.setFate {
                    exchanges.withLock {
                        $0 += 1
                        return $0 == 2 ? fate : .passes
                    }
                }
                let (answers, sessions) = (world.key.answerCount, try await world.vault.sessions().count)
                if fate == .losesRequest {
                    _ = try await Vault.logIn(laptop.settings, passkey: world.key)
                } else {
                    await expect({ if case .unavailable = $0 { true } else { false } }) {
                        _ = try await Vault.logIn(laptop.settings, passkey: world.key)
                    }
                }
                #expect(world.key.answerCount == answers + 1)
                #expect(try await world.vault.sessions().count == sessions + 1)
                _ = try await Vault.logIn(laptop.settings, passkey: world.key)
            }
        }
    }

    @Test func `a server that names another site gets no answer`() async throws {
        try await with { world in
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let laptop = try Device("laptop", world.server)
            laptop.link.setRewrite { request, reply in
                guard request.target == "/v1/passkeys/options" else { return reply }
                let lie = String(decoding: reply.body, as: UTF8.self).replacing("localhost", with: "bank.example")
                return HTTPReply(head: reply.head, body: Array(lie.utf8))
            }
            let count = world.key.answerCount
            await expect({ if case .passkey(.foreignSite) = $0 { true } else { false } }) {
                _ = try await Vault.logIn(laptop.settings, passkey: world.key)
            }
            #expect(world.key.answerCount == count)
        }
    }

    /// A device that was unlocked has the keys of passkeys, and could make boxes with a keyring of its own.
    @Test func `a lost device leaves no passkey that unlocks`() async throws {
        try await with { world in
            let vault = world.vault
            let factor = SoftwareAuthenticator()
            try await vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            try await vault.addPasskey("Factor", unlocks: false, password: password, with: factor)
            _ = try await vault.shutOutLostDevice(password: password, newPassword: another)
            #expect(try await vault.passkeys().map(\.name) == ["Factor"])
            #expect(try await vault.secrets().keyring.passkeys.isEmpty)
            await expect({ if case .wrongPasskey = $0 { true } else { false } }) { _ = try await world.noteElsewhere() }
            try await vault.addPasskey("New", unlocks: true, password: another, with: SoftwareAuthenticator())
        }
    }

    @Test func `a device opens no keyring by a passkey that its own keyring does not have`() async throws {
        try await with { world in
            let laptop = try Device("laptop", world.server)
            let vault = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            await expect({ if case .passkey(.unconfirmed) = $0 { true } else { false } }) {
                try await vault.logInAgain(passkey: world.key)
            }
            // As after an upgrade of version 0.9.0: its keyrings have no passkeys.
            try await vault.forgetPasskeyDigests()
            await expect({ if case .passkey(.unconfirmed) = $0 { true } else { false } }) {
                try await vault.logInAgain(passkey: world.key)
            }
            try await vault.logInAgain(password: password, passkey: world.key)
            try await vault.logInAgain(passkey: world.key)
        }
    }

    @Test func `keys of a passkey that the server has removed get no further box`() async throws {
        try await with { world in
            let vault = world.vault
            let passkey = try await vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let stretched = try await vault.stretch(password, userid, vault.knownIterations())
            try await vault.api.removePasskey(
                passkey.id.bytes, currentPasswordKey: stretched.passwordKey, try await vault.secrets().token)
            #expect(try await vault.secrets().keyring.passkeys.count == 1)
            let boxes = Mutex(0)
            world.phone.link.setRewrite { request, reply in
                let body = request.body?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } ?? ""
                boxes.withLock { $0 += body.matches(of: /"box":/).count }
                return reply
            }
            try await vault.changePassword(from: password, to: another)
            #expect(boxes.withLock { $0 } == 0)
            #expect(try await vault.secrets().keyring.passkeys.isEmpty)
        }
    }

    /// Another userid is another salt of the next password key.
    @Test func `a userid of the server's choice gets no password key`() async throws {
        try await with { world in
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let sent = Mutex<[String]>([])
            @Sendable func lie(_ request: HTTPRequest, _ reply: HTTPReply) -> HTTPReply {
                if request.method != .get { sent.withLock { $0.append(request.target) } }
                guard request.target == "/v1/account", request.method == .get else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self).replacing(userid, with: "fixed@rogue.example")
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            world.phone.link.setRewrite(lie)
            await expect({ if case .passkey(.unconfirmed) = $0 { true } else { false } }) {
                try await world.vault.logInAgain(passkey: world.key)
            }
            // The keyring confirms the userid on a new device.
            let laptop = try Device("laptop", world.server)
            laptop.link.setRewrite(lie)
            sent.withLock { $0 = [] }
            await expect({ if case .passkey(.unconfirmed) = $0 { true } else { false } }) {
                _ = try await Vault.logIn(laptop.settings, passkey: world.key)
            }
            #expect(!sent.withLock { $0 }.contains("/v1/kdf"))
            #expect(try await Vault.resume(laptop.settings) == nil)
            laptop.link.setRewrite { $1 }
            let vault = try await Vault.logIn(laptop.settings, passkey: world.key)
            #expect(try await vault.userid == userid)
        }
    }

    /// As an earlier kit has sealed it.
    @Test func `a keyring without the userid opens by passkey on known devices only`() async throws {
        try await with { world in
            let vault = world.vault
            try await vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            try await vault.putKeyringWithoutUserid()
            let laptop = try Device("laptop", world.server)
            await expect({ if case .passkey(.unconfirmed) = $0 { true } else { false } }) {
                _ = try await Vault.logIn(laptop.settings, passkey: world.key)
            }
            try await vault.logInAgain(passkey: world.key)
            _ = try await Vault.logIn(laptop.settings, userid: userid, password: password, passkey: world.key)
            // Each change seals the userid.
            try await vault.logInAgain(password: password, passkey: world.key)
            try await vault.changePassword(from: password, to: another)
            #expect(try await world.noteElsewhere() == "Buy salt.")
        }
    }

    @Test func `a device that has missed a new userid learns it from the keyring of a passkey`() async throws {
        try await with { world in
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let laptop = try Device("laptop", world.server)
            let vault = try await Vault.logIn(laptop.settings, passkey: world.key)
            try await world.vault.changeUserid(to: "ada@example.net", password: password)
            try await vault.logInAgain(passkey: world.key)
            #expect(try await vault.userid == "ada@example.net")
            try await vault.changePassword(from: password, to: another)
        }
    }

    @Test func `an older keyring is not taken from a passkey's log-in either`() async throws {
        try await with { world in
            try await world.vault.addPasskey("Key", unlocks: true, password: password, with: world.key)
            let old = try #require(try await world.vault.sealedKeyring())
            try await world.vault.rotateKeys(password: password)
            world.phone.link.setRewrite { request, reply in
                guard request.target == "/v1/passkeys/sessions" else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self)
                    .replacing(/"keyring":"[^"]*"/, with: #""keyring":"\#(Base64.encodeToString(old))""#)
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            await expect({ if case .keyringUnusable = $0 { true } else { false } }) {
                try await world.vault.logInAgain(passkey: world.key)
            }
            world.phone.link.setRewrite { $1 }
            try await world.vault.logInAgain(passkey: world.key)
        }
    }
}

extension Vault {
    fileprivate func forgetPasskeyDigests() throws { try store.set(.passkeys, nil) }

    fileprivate func sealedKeyring() throws -> [UInt8]? { try store.fact(.keyring) }

    fileprivate func putKeyringWithoutUserid() async throws {
        let opened = try open
        var (keyring, revision) = try await latestKeyring()
        keyring = try numberedForSending(keyring.changed { _ in }, of: opened.userid)
        keyring.useridMark = nil
        _ = try await api.putKeyring(keyring.sealed(under: opened.password), .revision(revision), opened.token)
    }
}
