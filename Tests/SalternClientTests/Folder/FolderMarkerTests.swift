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
            let (store, line) = try #require(before.lines.first)
            #expect(line > 0 && before.lines.count == 1)
            try await phone.sync.run()
            #expect(try marker(phone) == before)
            // Killed between marker and store, or a store out of a backup.
            let ahead = FolderMarker(id: before.id, collection: "files", lines: [store: line + 7])
            try Data(ahead.text.utf8).write(to: phone.url(".saltern/folder"))
            #expect(try await phone.sync.run().warnings.isEmpty)
            #expect(try marker(phone) == ahead)
            try phone.write("changed", to: "a")
            try await phone.sync.run()
            #expect(try #require(try marker(phone).lines[store]) > line + 7)
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
                let old = FolderMarker(id: before.id, lines: before.lines)
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
        #expect(try marker() == before.advanced(by: 2))
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
            let lines = last.lines.allSatisfy { next.lines[$0] ?? -1 >= $1 }
            #expect(next.id == last.id && lines)
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
            #expect(after == before.advanced(by: 2), "\(number)")
        }
        #expect(cancelled > 0)
    }

    @Test func `a marker is read as it is written, and as it was written before folders had a number`() {
        let id = ItemID.random()
        for generation in [0, 1, FolderMarker.generationLimit] {
            for collection in [nil, "files", String(repeating: "x", count: 32)] {
                for count in [0, 1, FolderMarker.lineLimit] {
                    let lines = Dictionary(
                        uniqueKeysWithValues: (0..<count).map { _ in (ItemID.random(), FolderMarker.generationLimit) })
                    let marker = FolderMarker(
                        id: id, generation: generation, collection: collection, lines: lines)
                    #expect(FolderMarker(Array(marker.text.utf8)) == marker)
                    #expect(marker.text.utf8.count <= FolderMarker.byteLimit)
                }
            }
        }
        for rest in [
            "", "\n", "\n7", "\n-7\n", "\nx\n", "\n99999999999999999999\n", "\n\(Int64.max)\n",
            "\n\(FolderMarker.generationLimit + 1)\n", "\n7\nfiles\n\(id)\n", "\n7\nfiles\n\(id) -1\n",
            "\n7\nfiles\n\(id) 7", "\n7\nfiles\nx 7\n",
        ] {
            #expect(FolderMarker(Array("\(id)\(rest)".utf8)) == FolderMarker(id: id))
        }
        for text in ["", "\n7\n", "no marker that names a folder at all\n7\n"] {
            #expect(FolderMarker(Array(text.utf8)) == nil)
        }
        var marker = FolderMarker(id: id)
        let own = ItemID.random()
        marker.advance(own, to: 1)
        for number in 2..<100 { marker.advance(.random(), to: Int64(number)) }
        marker.advance(own, to: 1)
        #expect(marker.lines.count == FolderMarker.lineLimit && marker.lines[own] == 1)
    }

    /// A folder that is made from another device's, with its marker, is merged once. A second time it is an older copy.
    @Test func `a folder that is seeded from another device's twice undoes nothing that was sent`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            func seed() throws {
                let files = FileManager.default
                for name in try files.contentsOfDirectory(atPath: laptop.folder.path) { try laptop.remove(name) }
                for name in try files.contentsOfDirectory(atPath: phone.folder.path) {
                    try files.copyItem(atPath: phone.url(name).path, toPath: laptop.url(name).path)
                }
            }
            try phone.write("one", to: "a")
            for number in 0..<4 {
                try phone.write("\(number)", to: "phone \(number)")
                try await phone.sync.run()
            }
            try seed()
            try laptop.write("laptop", to: "b")
            #expect(try await laptop.sync.run().uploaded.map(\.text) == ["b"])
            // More rounds there than here: its marker is ahead, and has no line of this store.
            phone.device.link.setUnreachable(true)
            for number in 0..<4 {
                try phone.write("changed \(number)", to: "a")
                #expect(try await phone.sync.run().isOffline)
            }
            phone.device.link.setUnreachable(false)
            try seed()
            await expectOutdated(laptop.sync)
            #expect(try await laptop.item("b") != nil)
            let filled = try await laptop.agreeing.run()
            #expect(filled.deletedThere.isEmpty && laptop.read("b") == "laptop")
        }
    }

    @Test func `one disk that two machines use in turns goes on, and an older state of it does not`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            let (disk, _) = FolderDevice.syncs(laptop.vault, phone.folder.path, "laptop")
            for number in 0..<3 {
                try phone.write("\(number)", to: "of the phone \(number)")
                #expect(try await phone.sync.run().uploaded.count == 1)
                try phone.write("\(number)", to: "of the laptop \(number)")
                #expect(try await disk.run().uploaded.count == 1)
            }
            #expect(try marker(phone).lines.count == 2)
            let backup = try TemporaryDirectory(.memory)
            let saved = backup.path + "/corner"
            try FileManager.default.copyItem(atPath: phone.url(".saltern").path, toPath: saved)
            try phone.write("more", to: "more")
            try await disk.run()
            try phone.remove(".saltern")
            try FileManager.default.copyItem(atPath: saved, toPath: phone.url(".saltern").path)
            await expectOutdated(disk)
            // The other one has nothing later than that.
            #expect(try await phone.sync.run().deletedThere.isEmpty)
        }
    }

    @Test func `a store that an earlier version has used compares the number, until it has a line`() async throws {
        try await withPhone { phone in
            let before = try marker(phone)
            let number = try #require(before.lines.values.first)
            try await phone.vault.setOldGeneration(number, ofFolder: before.id)
            func set(_ number: Int64, _ lines: [ItemID: Int64] = [:]) throws {
                let old = FolderMarker(id: before.id, generation: number, collection: "files", lines: lines)
                try Data(old.text.utf8).write(to: phone.url(".saltern/folder"))
            }
            try set(number - 1)
            await expectOutdated(phone.sync)
            // Another store has a line already.
            try set(number, [.random(): 99])
            try phone.write("changed", to: "a")
            #expect(try await phone.sync.run().uploaded.map(\.text) == ["a"])
            try set(number + 9)
            await expectOutdated(phone.sync)
        }
    }
}

extension FolderMarker {
    /// The same with a line that is higher; of markers with one line.
    fileprivate func advanced(by count: Int64) -> FolderMarker {
        FolderMarker(
            id: id, generation: generation, collection: "files", account: account,
            lines: lines.mapValues { $0 + count })
    }
}

extension Vault {
    /// The store is as an earlier version has left it.
    fileprivate func setOldGeneration(_ number: Int64, ofFolder id: ItemID) throws {
        try store.folders.setGeneration(number, ofFolder: id)
        try store.database.execute("UPDATE folder_generations SET has_line = 0")
    }
}
