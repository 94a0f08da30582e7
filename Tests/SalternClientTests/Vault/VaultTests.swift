import Cryptography
import Foundation
import SalternClient
import SalternTesting
import Testing

/// Two devices of one person against a real server.
@Suite struct VaultTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func withPair(
        merge: MergeRule? = nil, _ body: (LiveServer, Vault, Vault, Device, Device) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server, merge: merge)
            let laptop = try Device("laptop", server, merge: merge)
            let first = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let second = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            try await body(server, first, second, phone, laptop)
        }
    }

    @Test func `what one device writes, the other reads, changes and deletes`() async throws {
        try await withPair { _, phone, laptop, _, _ in
            let notes = phone.collection("notes", of: Note.self)
            let there = laptop.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "Buy salt."), title: "Shopping")
            #expect(try await phone.unsentCount() == 1)
            #expect(try await phone.sync().sent == 1)
            #expect(try await laptop.sync().changed == [id])
            #expect(try await there[id] == Note(text: "Buy salt."))
            try await there.put(Note(text: "Buy pepper."), id, title: "Shopping")
            try await laptop.sync()
            try await phone.sync()
            #expect(try await notes.all() == [id: Note(text: "Buy pepper.")])
            try await notes.delete(id)
            try await phone.sync()
            #expect(try await laptop.sync().removed == [id])
            #expect(try await there.all().isEmpty)
            // The trash of this device still has it.
            try await there.restore(id)
            try await laptop.sync()
            try await phone.sync()
            #expect(try await notes[id] == Note(text: "Buy pepper."))
            #expect(try await phone.notices().isEmpty)
            #expect(try await laptop.notices().isEmpty)
        }
    }

    @Test func `changed on both sides, both versions are kept and said`() async throws {
        try await withPair { _, phone, laptop, _, _ in
            let here = phone.collection("notes", of: Note.self)
            let there = laptop.collection("notes", of: Note.self)
            let id = try await here.put(Note(text: "one"))
            try await phone.sync()
            try await laptop.sync()
            try await here.put(Note(text: "phone"), id)
            try await there.put(Note(text: "laptop"), id)
            try await phone.sync()
            try await laptop.sync()
            try await phone.sync()
            #expect(Set(try await here.all().values.map(\.text)) == ["phone", "laptop"])
            #expect(try await here.all() == there.all())
            let notice = try #require(try await laptop.notices().first)
            #expect(notice.kind == .conflict && notice.item == id)
            #expect(try await there[#require(notice.other)] == Note(text: "laptop"))
            try await laptop.forget(notice)
            #expect(try await laptop.notices().isEmpty)
        }
    }

    @Test func `an app that can merge gets one version`() async throws {
        let merge: MergeRule = { _, base, mine, theirs in
            guard base != nil else { return nil }
            let texts = [mine, theirs].map { item in
                item.body.withUnsafeBytes { try? JSONDecoder().decode(Note.self, from: Data($0)).text } ?? ""
            }.sorted()
            guard let data = try? JSONEncoder().encode(Note(text: texts.joined(separator: "+"))) else { return nil }
            return PlainItem(body: SecureBytes(copying: [UInt8](data)))
        }
        try await withPair(merge: merge) { _, phone, laptop, _, _ in
            let here = phone.collection("notes", of: Note.self)
            let there = laptop.collection("notes", of: Note.self)
            let id = try await here.put(Note(text: "one"))
            try await phone.sync()
            try await laptop.sync()
            try await here.put(Note(text: "phone"), id)
            try await there.put(Note(text: "laptop"), id)
            try await phone.sync()
            try await laptop.sync()
            try await phone.sync()
            #expect(try await here.all() == [id: Note(text: "laptop+phone")])
            #expect(try await here.all() == there.all())
        }
    }

    @Test func `a deletion loses against an edit, on either side`() async throws {
        try await withPair { _, phone, laptop, _, _ in
            let here = phone.collection("notes", of: Note.self)
            let there = laptop.collection("notes", of: Note.self)
            let edited = try await here.put(Note(text: "a"))
            let deleted = try await here.put(Note(text: "b"))
            try await phone.sync()
            try await laptop.sync()
            try await here.put(Note(text: "a2"), edited)
            try await there.delete(edited)
            try await there.put(Note(text: "b2"), deleted)
            try await here.delete(deleted)
            try await laptop.sync()
            try await phone.sync()
            try await laptop.sync()
            #expect(try await here.all() == [edited: Note(text: "a2"), deleted: Note(text: "b2")])
            #expect(try await here.all() == there.all())
            #expect(Set(try await phone.notices().map(\.kind)) == [.keptAfterDeletion, .deletionUndone])
        }
    }

    @Test func `a vault goes on offline, after a restart, and locked only with the password`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: userid, password: password)
            phone.link.setFate { .losesRequest }
            let id = try await vault?.collection("notes", of: Note.self).put(Note(text: "offline"))
            vault = nil
            vault = try await Vault.resume(phone.settings)
            let resumed = try #require(vault)
            #expect(try await resumed.collection("notes", of: Note.self)[#require(id)] == Note(text: "offline"))
            await #expect { try await resumed.sync() } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
            try await resumed.lock()
            await #expect { try await resumed.item(#require(id)) } throws: {
                if case VaultError.locked = $0 { true } else { false }
            }
            await #expect { try await resumed.unlock(Password("wrong")) } throws: {
                if case VaultError.wrongCredentials = $0 { true } else { false }
            }
            try await resumed.unlock(password)
            #expect(try await resumed.collection("notes", of: Note.self)[#require(id)] == Note(text: "offline"))
            await #expect { try await resumed.signOut() } throws: {
                if case VaultError.unsentEdits(count: 1) = $0 { true } else { false }
            }
            phone.link.setFate { .passes }
            try await resumed.sync()
            try await resumed.signOut()
            vault = nil
        }
    }

    @Test func `nothing readable is in the folder of a vault`() async throws {
        try await withPair { _, phone, _, device, _ in
            let canary = "canary-\(ItemID.random())"
            try await phone.collection("notes", of: Note.self).put(Note(text: canary), title: canary)
            try await phone.sync()
            for name in try FileManager.default.contentsOfDirectory(atPath: device.folder.path) {
                let data = try Data(contentsOf: URL(filePath: device.folder.path + "/" + name))
                #expect(data.range(of: Data(canary.utf8)) == nil)
                #expect(data.range(of: Data("slt_".utf8)) == nil)
                #expect(data.range(of: Data("correct horse".utf8)) == nil)
            }
        }
    }

    @Test func `a wrong password, a taken userid and one that is not canonical are told apart`() async throws {
        try await withPair { server, _, _, _, _ in
            let third = try Device("third", server)
            await #expect {
                try await Vault.logIn(third.settings, userid: userid, password: Password("wrong"))
            } throws: {
                if case VaultError.wrongCredentials = $0 { true } else { false }
            }
            await #expect {
                try await Vault.signUp(third.settings, userid: userid, password: Password("another"))
            } throws: {
                if case VaultError.refused(let problem) = $0 { problem.code == .useridTaken } else { false }
            }
            await #expect { try await Vault.signUp(third.settings, userid: "Eve", password: password) } throws: {
                if case VaultError.useridNotCanonical(canonical: "eve") = $0 { true } else { false }
            }
        }
    }

    @Test(.timeLimit(.minutes(60))) func `a change elsewhere is heard of without asking`() async throws {
        try await withPair { _, phone, laptop, _, _ in
            let following = Task { try await laptop.keepInSync() }
            defer { following.cancel() }
            let changes = laptop.changes()
            let id = try await phone.collection("notes", of: Note.self).put(Note(text: "hello"))
            try await phone.sync()
            for await ids in changes where ids.contains(id) { break }
            #expect(try await laptop.collection("notes", of: Note.self)[id] == Note(text: "hello"))
        }
    }
}
