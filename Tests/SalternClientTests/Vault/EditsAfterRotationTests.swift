import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What a person does after a rotation, before anything was fetched: the server has everything in other bytes.
@Suite final class EditsAfterRotationTests: Sendable {
    /// Their folders are there for as long as the test runs.
    private let devices = Mutex<[Device]>([])
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func keep(_ device: Device) -> Device {
        devices.withLock { $0.append(device) }
        return device
    }

    /// Two devices with the same notes.
    private func withTwoDevices(
        _ body: (_ phone: Device, _ vault: Vault, _ other: Vault, _ ids: [ItemID]) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = keep(try Device("phone", server))
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let laptop = keep(try Device("laptop", server))
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            var ids: [ItemID] = []
            for number in 0..<4 {
                ids.append(try await notes(vault).put(Note(text: "\(number)"), .random(), title: "T\(number)"))
            }
            for vault in [vault, other] { try await vault.sync() }
            try await body(phone, vault, other, ids)
        }
    }

    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    /// One note is edited, one deleted, one moved, one deleted and brought back.
    private func edit(_ vault: Vault, _ ids: [ItemID], _ text: String) async throws {
        try await notes(vault).put(Note(text: text), ids[0], title: "T0")
        try await notes(vault).delete(ids[1])
        let moved = try #require(try await vault.item(ids[2]))
        try await vault.put(moved, ids[2], in: "archive")
        try await notes(vault).delete(ids[3])
        try await notes(vault).restore(ids[3])
        try await notes(vault).put(Note(text: "\(text), restored"), ids[3], title: "T3")
    }

    private func expectEdits(_ vaults: [Vault], _ ids: [ItemID], _ text: String) async throws {
        for vault in vaults {
            #expect(
                try await notes(vault).all() == [ids[0]: Note(text: text), ids[3]: Note(text: "\(text), restored")])
            #expect(try await vault.ids("archive") == [ids[2]])
            #expect(try await vault.notices().isEmpty)
            #expect(try await vault.unsentCount() == 0)
        }
    }

    @Test func `the device that has rotated edits and deletes without conflicts`() async throws {
        try await withTwoDevices { _, vault, other, ids in
            try await vault.rotateKeys(password: password)
            try await edit(vault, ids, "edited")
            try await vault.sync()
            try await other.logInAgain(password: password)
            for vault in [other, vault] { try await vault.sync() }
            try await expectEdits([vault, other], ids, "edited")
        }
    }

    @Test func `also when it has not heard that the rotation is done`() async throws {
        try await withTwoDevices { phone, vault, other, ids in
            phone.link.setRewrite { request, reply in
                guard request.target.hasSuffix("/commit"), reply.head.status == 200 else { return reply }
                // Nothing passes any more.
                phone.link.setFate { .losesRequest }
                return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: [])
            }
            await #expect(throws: VaultError.self) { try await vault.rotateKeys(password: password) }
            phone.link.setRewrite { $1 }
            phone.link.setFate { .passes }
            try await edit(vault, ids, "edited")
            try await vault.sync()
            try await other.logInAgain(password: password)
            for vault in [other, vault] { try await vault.sync() }
            try await expectEdits([vault, other], ids, "edited")
        }
    }

    @Test func `a device that logs in after each of two rotations, and fetches nothing between them`() async throws {
        try await withTwoDevices { _, vault, other, ids in
            for _ in 0..<2 {
                try await vault.rotateKeys(password: password)
                try await other.logInAgain(password: password)
            }
            try await edit(other, ids, "edited there")
            for vault in [other, vault, other] { try await vault.sync() }
            try await expectEdits([vault, other], ids, "edited there")
        }
    }

    @Test(arguments: 1...3)
    func `a device that logs in after several rotations has what it wrote before them`(rotations: Int) async throws {
        try await withTwoDevices { _, vault, other, ids in
            try await edit(other, ids, "edited there")
            for _ in 0..<rotations { try await vault.rotateKeys(password: password) }
            try await other.logInAgain(password: password)
            for vault in [other, vault, other] { try await vault.sync() }
            try await expectEdits([vault, other], ids, "edited there")
        }
    }

    @Test(arguments: 1...2)
    func `what somebody has changed, and changed back, after rotations is not deleted`(rotations: Int) async throws {
        try await withTwoDevices { _, vault, other, ids in
            try await notes(other).delete(ids[0])
            for _ in 0..<rotations { try await vault.rotateKeys(password: password) }
            for text in ["changed", "0"] {
                try await notes(vault).put(Note(text: text), ids[0], title: "T0")
                try await vault.sync()
            }
            try await other.logInAgain(password: password)
            for vault in [other, vault] { try await vault.sync() }
            for vault in [vault, other] { #expect(try await notes(vault)[ids[0]] == Note(text: "0")) }
            let kinds = try await other.notices().map(\.kind)
            #expect(kinds == [.deletionUndone])
        }
    }

    @Test func `what was sealed anew on both sides is the same version, and nobody hears of it`() async throws {
        try await withTwoDevices { _, vault, other, ids in
            for _ in 0..<2 {
                try await vault.rotateKeys(password: password)
                try await other.logInAgain(password: password)
            }
            for vault in [other, vault] {
                let report = try await vault.sync()
                #expect(report.sent == 0)
                #expect(try await vault.notices().isEmpty)
                #expect(Set(try await notes(vault).all().keys) == Set(ids))
            }
        }
    }

    @Test(arguments: LossyTransport.Moment.allCases)
    func `two devices that rotate at once`(moment: LossyTransport.Moment) async throws {
        try await withTwoDevices { phone, vault, other, ids in
            for exchange in 0... {
                phone.link.interrupt(
                    LossyTransport.Interruption(exchange: exchange, moment: moment) {
                        _ = try? await other.rotateKeys(password: self.password)
                    })
                var isDone = false
                do throws(VaultError) {
                    try await vault.rotateKeys(password: password)
                    isDone = true
                } catch .sessionEnded, .refused {
                    // The other one was faster, or has opened one in the place of this one's.
                }
                let isOver = phone.link.endInterruption() != nil
                for vault in [vault, other] {
                    do throws(VaultError) { _ = try await vault.account() } catch .sessionEnded {
                        try await vault.logInAgain(password: password)
                    }
                }
                let text = Note(text: "\(exchange)")
                for (vault, id) in [(vault, ids[0]), (other, ids[1])] {
                    try await notes(vault).put(text, id, title: "T")
                }
                let (here, there) = (ItemID.random(), ItemID.random())
                for id in [here, there] { try await notes(vault).put(text, id) }
                for vault in [vault, other, vault] { try await vault.sync() }
                try await notes(vault).delete(here)
                try await notes(other).delete(there)
                for vault in [vault, other, vault] { try await vault.sync() }
                for vault in [vault, other] {
                    #expect(Set(try await notes(vault).all().keys) == Set(ids), "exchange \(exchange)")
                    #expect(try await notes(vault)[ids[0]] == text)
                    #expect(try await notes(vault)[ids[1]] == text)
                    #expect(try await vault.notices().isEmpty, "exchange \(exchange)")
                }
                if isOver {
                    #expect(isDone)
                    break
                }
                try #require(exchange < 40)
            }
        }
    }

    @Test func `a server that gives an older or another version after a rotation gains nothing`() async throws {
        try await withTwoDevices { phone, vault, _, ids in
            let id = ids[0]
            try await notes(vault).put(Note(text: "second"), id, title: "T0")
            try await notes(vault).put(Note(text: "third"), id, title: "T0")
            try await vault.sync()
            let before = try await vault.edit(of: id)
            try await vault.rotateKeys(password: password)
            #expect(try await vault.edit(of: id) == before)
            // What the server could have from a rotation that was staged and staged again.
            for (number, text) in [(before - 1, "third"), (before - 1, "0"), (before, "0")] {
                // The lie is about this item alone: it hides nothing that was acknowledged.
                try await vault.sync()
                try await show(vault, phone, id, Note(text: text), SealedBox.Edit(number: number, previous: .zeros))
                _ = try? await vault.sync()
                phone.link.setAnswer { _ in nil }
                #expect(try await notes(vault)[id] == Note(text: "third"), "\(number) \(text)")
                let notices = try await vault.notices()
                #expect(notices.map(\.kind) == [.rolledBack], "\(number) \(text)")
                for notice in notices { try await vault.forget(notice) }
            }
        }
    }

    /// The server tells of a version that it was never sent.
    private func show(
        _ vault: Vault, _ device: Device, _ id: ItemID, _ note: Note, _ edit: SealedBox.Edit
    ) async throws {
        let body = try await vault.sealed(note, id, edit)
        device.link.setAnswer { request in
            guard request.target.hasPrefix("/v1/changes") else { return nil }
            let page =
                #"{"changes":[{"id":"\#(id)","revision":999999,"collection":"notes","deleted":false,"#
                + #""createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z","#
                + #""format":"saltern-1","body":"\#(body)"}],"cursor":"AgAAAAAAAAAAAAAAAAAAAAA","more":false,"#
                + #""revisionBase":0}"#
            return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(page.utf8))
        }
    }
}

extension [UInt8] {
    fileprivate static let zeros = [UInt8](repeating: 0, count: 32)
}

extension Vault {
    fileprivate func edit(of id: ItemID) throws -> UInt64 {
        try #require(try store.item(id)).edit
    }

    /// A version of a note under the key in force, in base64.
    fileprivate func sealed(_ note: Note, _ id: ItemID, _ edit: SealedBox.Edit) throws -> String {
        let plain = PlainItem(title: nil, body: SecureBytes(copying: [UInt8](try JSONEncoder().encode(note))))
        return Base64.encodeToString(
            try open.engine.sealer.seal(plain, id, collection: "notes", edit).body.bytes)
    }
}
