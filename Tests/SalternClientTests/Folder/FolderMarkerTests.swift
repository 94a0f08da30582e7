import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Folders that are not as they were when they were last in sync: older copies, and what comes out of a backup.
@Suite struct FolderMarkerTests {
    /// A phone with two files that are in sync.
    private func withPhone(_ body: (FolderDevice) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            try phone.write("one", to: "a")
            try phone.write("two", to: "b")
            try await phone.sync.run()
            try await body(phone)
        }
    }

    private func expectOutdated(_ sync: FolderSync) async {
        await #expect {
            try await sync.run()
        } throws: { if case FolderError.outdated = $0 { true } else { false } }
    }

    private func marker(_ phone: FolderDevice) throws -> FolderMarker {
        try #require(FolderMarker(Array(Data(contentsOf: phone.url(".saltern/folder")))))
    }

    @Test func `of a folder and its copy, the one that is in sync first goes on, and the other undoes nothing of it`()
        async throws
    {
        try await withPhone { phone in
            let other = try TemporaryDirectory(.memory)
            let (copy, away) = (other.path + "/copy", other.path + "/away")
            try FileManager.default.copyItem(atPath: phone.folder.path, toPath: copy)
            try FileManager.default.moveItem(atPath: phone.folder.path, toPath: away)
            // The disk is not there: its copy passes for a folder that was moved.
            try Data("changed".utf8).write(to: URL(filePath: copy + "/a"))
            try FileManager.default.removeItem(atPath: copy + "/b")
            try Data("three".utf8).write(to: URL(filePath: copy + "/c"))
            let report = try await FolderSync(vault: phone.vault, root: URL(filePath: copy)).run()
            #expect(report.uploaded.count == 2 && report.deletedThere.count == 1)
            // It is there again, and the copy is not.
            try FileManager.default.removeItem(atPath: copy)
            try FileManager.default.moveItem(atPath: away, toPath: phone.folder.path)
            await expectOutdated(phone.sync)
            #expect(phone.files() == ["a": "one", "b": "two"])
            #expect(try await phone.vault.ids("files").count == 2)
            // Somebody agrees: all of both is kept.
            let filled = try await phone.agreeing.run()
            #expect(filled.deletedThere.isEmpty && filled.deletedHere.isEmpty)
            let conflict = try #require(filled.conflicts.first?.text)
            #expect(phone.files() == ["a": "changed", conflict: "one", "b": "two", "c": "three"])
            #expect(try await phone.sync.run().warnings.isEmpty)
        }
    }

    @Test func `a folder out of a backup is refused where it was`() async throws {
        try await withPhone { phone in
            let backup = try TemporaryDirectory(.memory)
            let saved = backup.path + "/saved"
            try FileManager.default.copyItem(atPath: phone.folder.path, toPath: saved)
            try phone.write("changed", to: "a")
            try await phone.sync.run()
            for name in ["a", "b", ".saltern"] {
                try phone.remove(name)
                try FileManager.default.copyItem(atPath: saved + "/" + name, toPath: phone.url(name).path)
            }
            await expectOutdated(phone.sync)
            // Also when another folder has been in its place meanwhile.
            try phone.rename(".saltern", "../\(URL(filePath: backup.path).lastPathComponent)/corner")
            try await phone.agreeing.run()
            try phone.remove(".saltern")
            try FileManager.default.moveItem(atPath: backup.path + "/corner", toPath: phone.url(".saltern").path)
            await expectOutdated(phone.sync)
        }
    }

    @Test func `only what changes something moves a folder on; one ahead of the store is no older one`() async throws {
        try await withPhone { phone in
            let before = try marker(phone)
            #expect(before.generation > 0)
            try await phone.sync.run()
            #expect(try marker(phone) == before)
            // Killed between marker and store, or a store out of a backup.
            let ahead = FolderMarker(id: before.id, generation: before.generation + 7)
            try Data(ahead.text.utf8).write(to: phone.url(".saltern/folder"))
            #expect(try await phone.sync.run().warnings.isEmpty)
            #expect(try marker(phone) == ahead)
            try phone.write("changed", to: "a")
            try await phone.sync.run()
            #expect(try marker(phone).generation > ahead.generation)
            #expect(try FileManager.default.contentsOfDirectory(atPath: phone.url(".saltern/parts").path).isEmpty)
        }
    }

    @Test func `what is changed is sent though the folder's disk is full`() async throws {
        let phone = try #require(try await MemoryPerson(1).devices.first)
        try phone.begin("files", foldsCase: false)
        _ = try await phone.run(isAgreeing: false)
        #expect(phone.put("one", at: "a"))
        phone.disk.fill()
        let report = try await phone.run(isAgreeing: false)
        #expect(report.uploaded.map(\.text) == ["a"])
        #expect(report.warnings == [FolderWarning(kind: .failed, path: ".saltern/folder")])
        // Nor is it an older copy because of that.
        #expect(phone.put("changed", at: "a"))
        _ = try await phone.run(isAgreeing: false)
    }

    @Test(arguments: [false, true])
    func `a folder stays with its collection, also one whose marker does not name it`(isOld: Bool) async throws {
        try await withPhone { phone in
            let before = try marker(phone)
            #expect(before.collection == "files")
            if isOld {
                let old = FolderMarker(id: before.id, generation: before.generation)
                try Data(old.text.utf8).write(to: phone.url(".saltern/folder"))
            }
            try phone.remove("a")
            for allows in [false, true] {
                let settings = FolderSettings(collection: "other", allowsDeletions: allows)
                let other = FolderSync(vault: phone.vault, root: URL(filePath: phone.folder.path), settings: settings)
                await #expect {
                    try await other.run()
                } throws: { if case FolderError.otherCollection("files") = $0 { true } else { false } }
            }
            // What was known is known still.
            let report = try await phone.sync.run()
            #expect(report.deletedThere.map(\.text) == ["a"] && report.uploaded.isEmpty && report.downloaded.isEmpty)
            #expect(phone.files() == ["b": "two"])
            #expect(try marker(phone).collection == "files")
            #expect(try await phone.vault.ids("other").isEmpty)
        }
    }

    /// A device's folder in memory, and its marker.
    private func memoryPhone() async throws -> (MemoryDevice, () throws -> FolderMarker) {
        let phone = try #require(try await MemoryPerson(1).devices.first)
        try phone.begin("files", foldsCase: false)
        #expect(phone.put("one", at: "a"))
        _ = try await phone.run(isAgreeing: false)
        return (
            phone,
            {
                let text = try #require(phone.disk.contents()[".saltern/folder"], "a marker")
                return try #require(FolderMarker(Array(text.utf8)))
            }
        )
    }

    @Test func `a folder moves on where names cannot be exchanged`() async throws {
        let (phone, marker) = try await memoryPhone()
        let before = try marker()
        phone.disk.forgetExchanging()
        #expect(phone.put("two", at: "b"))
        let report = try await phone.run(isAgreeing: false)
        #expect(report.uploaded.map(\.text) == ["b"] && report.warnings.isEmpty)
        #expect(try marker() == FolderMarker(id: before.id, generation: before.generation + 2, collection: "files"))
        #expect(try await phone.run(isAgreeing: false).warnings.isEmpty)
    }

    @Test func `whenever the process ends there is a marker`() async throws {
        let (phone, marker) = try await memoryPhone()
        var last = try marker()
        for number in 0..<40 {
            #expect(phone.put("\(number)", at: "\(number)"))
            phone.moments.arm(.init(number: number, isOfWriting: true), .end)
            _ = try? await phone.run(isAgreeing: false)
            let next = try marker()
            #expect(next.id == last.id && next.generation >= last.generation)
            last = next
            try await phone.startAgain()
        }
    }

    /// Two steps: a copy that is made between them has not all of the round.
    @Test func `a folder moves on before and after what a round changes, however that ends`() async throws {
        let (phone, marker) = try await memoryPhone()
        var cancelled = 0
        for number in 0..<60 {
            let before = try marker()
            #expect(phone.put("\(number)", at: "\(number)") && phone.put("\(number)", at: "more \(number)"))
            phone.moments.arm(
                .init(number: number, isOfWriting: true), .other { withUnsafeCurrentTask { $0?.cancel() } })
            var isCancelled = false
            do { _ = try await phone.run(isAgreeing: false) } catch FolderError.cancelled { isCancelled = true }
            phone.moments.disarm()
            let after = try marker()
            if isCancelled, after == before { continue }
            if isCancelled { cancelled += 1 }
            #expect(
                after == FolderMarker(id: before.id, generation: before.generation + 2, collection: "files"),
                "\(number)")
        }
        #expect(cancelled > 0)
    }

    @Test func `a marker is read as it is written, and as it was written before folders had a number`() {
        let id = ItemID.random()
        for generation in [0, 1, FolderMarker.generationLimit] {
            for collection in [nil, "files", String(repeating: "x", count: 32)] {
                let marker = FolderMarker(id: id, generation: generation, collection: collection)
                #expect(FolderMarker(Array(marker.text.utf8)) == marker)
                #expect(marker.text.utf8.count <= FolderMarker.byteLimit)
            }
        }
        for rest in [
            "", "\n", "\n7", "\n-7\n", "\nx\n", "\n99999999999999999999\n", "\n\(Int64.max)\n",
            "\n\(FolderMarker.generationLimit + 1)\n",
        ] {
            #expect(FolderMarker(Array("\(id)\(rest)".utf8)) == FolderMarker(id: id))
        }
        for text in ["", "\n7\n", "no marker that names a folder at all\n7\n"] {
            #expect(FolderMarker(Array(text.utf8)) == nil)
        }
    }
}
