import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Dry runs.
@Suite struct FolderPlanTests {
    private func withPair(_ body: (FolderDevice, FolderDevice) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try await body(phone, laptop)
        }
    }

    /// Every file of a device with its content and its times: of the folder, and of the store.
    private func state(_ device: FolderDevice) throws -> [String: Data] {
        var state: [String: Data] = [:]
        for root in [device.folder.path, device.device.settings.folder.path] {
            for name in FileManager.default.enumerator(atPath: root)?.compactMap({ $0 as? String }) ?? [] {
                let path = root + "/" + name
                let attributes = try FileManager.default.attributesOfItem(atPath: path)
                // SQLite's index of its log is no content.
                if name.hasSuffix("-shm") { continue }
                var data = (try? Data(contentsOf: URL(filePath: path))) ?? Data()
                data.append(Data("\(attributes[.modificationDate] ?? "") \(attributes[.posixPermissions] ?? "")".utf8))
                state[path] = data
            }
        }
        return state
    }

    /// Expects a plan to be what the round after it does, and to change nothing.
    private func expectPlan(_ device: FolderDevice, sync: FolderSync? = nil) async throws -> FolderReport {
        let sync = sync ?? device.sync
        let before = try state(device)
        let plan = try await sync.plan()
        #expect(try state(device) == before)
        let report = try await sync.run()
        func names(_ report: FolderReport) -> [[String]] {
            [
                report.uploaded, report.downloaded, report.renamed, report.deletedHere, report.deletedThere,
                report.heldHere, report.heldThere, report.conflicts,
                report.fetchedFolders, report.sentFolders, report.removedFoldersHere, report.removedFoldersThere,
            ].map { $0.map(\.text).sorted() } + [report.ignored, report.warnings.map { "\($0.kind) \($0.path)" }]
        }
        #expect(names(plan) == names(report))
        return plan
    }

    @Test func `a dry run names what the round does, and changes nothing`() async throws {
        try await withPair { phone, laptop in
            try phone.write("*.tmp\n", to: ".salternignore")
            for name in ["a", "b", "c", "d", "e", "f", "x.tmp"] { try phone.write(name, to: "sub/" + name) }
            let first = try await expectPlan(phone)
            #expect(first.uploaded.count == 7 && first.ignored == ["sub/x.tmp"])
            // The laptop's folder was never in sync: it gets no marker.
            try laptop.write("of the laptop", to: "sub/a")
            try laptop.write("of the laptop", to: "y.tmp")
            let second = try await expectPlan(laptop)
            #expect(second.conflicts.count == 1 && second.ignored == ["y.tmp"])
            #expect(second.downloaded.count == 7)
            try await phone.sync.run()
            try phone.write("changed", to: "sub/b")
            try phone.remove("sub/c")
            try phone.rename("sub/d", "elsewhere/d")
            try await phone.sync.run()
            try laptop.write("changed there", to: "sub/e")
            try laptop.remove("sub/f")
            try laptop.write("mine", to: "sub/b")
            let third = try await expectPlan(laptop)
            #expect(third.downloaded.map(\.text) == ["sub/b"] && third.deletedHere.map(\.text) == ["sub/c"])
            #expect(third.renamed.map(\.text) == ["elsewhere/d"] && third.deletedThere.map(\.text) == ["sub/f"])
            #expect(third.conflicts.count == 1 && third.uploaded.count == 2)
            let last = try await expectPlan(laptop)
            #expect(!last.hasDone)
        }
    }

    @Test func `a dry run names empty folders as the round does`() async throws {
        try await withPair { phone, laptop in
            func make(_ path: String, _ device: FolderDevice) throws {
                try FileManager.default.createDirectory(
                    atPath: device.url(path).path, withIntermediateDirectories: true)
            }
            try make("a", phone)
            try make("x", phone)
            try await phone.sync.run()
            try make("a/b", phone)
            try await phone.sync.run()
            try make("a/b/c", phone)
            try make("filled", phone)
            try phone.write("one", to: "emptied/file")
            try phone.write("one", to: "moved/file")
            #expect(try await expectPlan(phone).sentFolders.map(\.text) == ["a/b/c", "filled"])
            try make("own", laptop)
            #expect(try await expectPlan(laptop).fetchedFolders.count == 5)
            // Folders in folders go, a file goes into an empty folder, another leaves one, and one takes the place of a folder.
            try phone.remove("a")
            try phone.remove("x")
            try phone.write("file", to: "x")
            try phone.write("two", to: "filled/file")
            try phone.remove("emptied/file")
            try phone.remove("emptied")
            try phone.rename("moved/file", "file")
            try phone.remove("moved")
            try phone.write("three", to: "mine/file")
            #expect(try await expectPlan(phone).removedFoldersThere.count == 4)
            try make("mine", laptop)
            let plan = try await expectPlan(laptop)
            #expect(plan.removedFoldersHere.map(\.text) == ["a/b/c"] && plan.sentFolders.isEmpty)
            #expect(laptop.folders() == ["filled", "mine", "own"])
            for device in [laptop, phone, laptop] { _ = try await expectPlan(device) }
            #expect(phone.folders() == laptop.folders() && phone.files() == laptop.files())
        }
    }

    @Test func `deletions that would wait are named, and a dry run that agrees agrees to nothing`() async throws {
        try await withPair { phone, laptop in
            for number in 0..<12 { try phone.write("\(number)", to: "\(number)") }
            try await phone.sync.run()
            try await laptop.sync.run()
            for number in 0..<8 { try laptop.remove("\(number)") }
            let plan = try await expectPlan(laptop)
            #expect(plan.heldThere.count == 8 && plan.deletedThere.isEmpty)
            #expect(try await laptop.agreeing.plan().deletedThere.count == 8)
            #expect(try await laptop.sync.run().heldThere.count == 8)
        }
    }

    @Test func `without a server a dry run says what is so far`() async throws {
        try await withPair { phone, _ in
            try phone.write("one", to: "a")
            phone.device.link.setUnreachable(true)
            let plan = try await phone.sync.plan()
            #expect(plan.isOffline && plan.uploaded.map(\.text) == ["a"])
        }
    }

    @Test func `patterns that come from elsewhere are those of the dry run`() async throws {
        try await withPair { phone, laptop in
            for name in ["a", "b.tmp"] { try phone.write(name, to: name) }
            try await phone.sync.run()
            try await laptop.sync.run()
            try phone.write("*.tmp", to: ".salternignore")
            try await phone.sync.run()
            try laptop.write("changed", to: "b.tmp")
            try laptop.write("new", to: "c.tmp")
            let plan = try await expectPlan(laptop)
            #expect(plan.downloaded.map(\.text) == [".salternignore"] && plan.uploaded.isEmpty)
            #expect(plan.ignored == ["b.tmp", "c.tmp"])
        }
    }

    @Test func `a folder that is refused is refused in a dry run, too`() async throws {
        try await withPair { phone, _ in
            try phone.write("one", to: "a")
            try await phone.sync.run()
            try phone.remove(".saltern/folder")
            let plan = try await phone.sync.plan()
            #expect(plan.warnings.map(\.kind) == [.markerMissing] && !plan.hasDone)
            #expect(!phone.has(".saltern/folder"))
        }
    }
}
