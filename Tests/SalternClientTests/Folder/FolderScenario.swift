import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// A person whose devices, files and server are in memory; stores are SQLite's, in a file system in memory.
final class MemoryPerson {
    let server = MemoryServer()
    let devices: [MemoryDevice]

    /// - Parameter seed: What the ids of items are made from.
    init(_ seed: UInt64) async throws {
        var devices: [MemoryDevice] = []
        for (index, name) in ["phone", "laptop", "tablet"].enumerated() {
            devices.append(try await MemoryDevice(name, server, seed &* 3 &+ UInt64(index), isFirst: devices.isEmpty))
        }
        self.devices = devices
    }
}

/// A device whose process can end at any step, and starts again.
final class MemoryDevice: PersonsFolder {
    let name: String
    let link: LossyTransport
    let moments = Moments()
    private let directory: TemporaryDirectory
    private let settings: VaultSettings
    private(set) var disk: MemoryFolders
    private var vault: Vault?
    private var syncs: (careful: FolderSync, agreeing: FolderSync)?
    private var changes: AsyncStream<Set<ItemID>>?
    /// Whether the last round with a focus was this process's, and no other round came after it.
    private var isWatching = false
    private var folder = ""

    init(_ name: String, _ server: MemoryServer, _ seed: UInt64, isFirst: Bool) async throws {
        self.name = name
        directory = try TemporaryDirectory(.memory)
        link = LossyTransport(server)
        var settings = VaultSettings.forTests(
            folder: directory.path, MomentsTransport(inner: link, moments: moments), name: name)
        let random = Mutex(SeededGenerator(seed: seed))
        settings.newID = { random.withLock { ItemID.random(using: &$0) } }
        self.settings = settings
        disk = MemoryFolders(foldsCase: false, moments)
        let password = Password("password")
        vault =
            isFirst
            ? try await Vault.signUp(settings, userid: "ada@example.org", password: password)
            : try await Vault.logIn(settings, userid: "ada@example.org", password: password)
        await vault?.attach(moments)
    }

    /// Begins with a folder that is empty.
    func begin(_ folder: String, foldsCase: Bool) throws {
        self.folder = folder
        disk = MemoryFolders(foldsCase: foldsCase, moments)
        try makeSyncs()
    }

    private func makeSyncs() throws {
        let vault = try #require(vault)
        var settings = FolderSettings(collection: folder, deviceName: name)
        let careful = FolderSync(OwnedItems(vault), "/" + folder, settings, disk)
        settings.allowsDeletions = true
        syncs = (careful, FolderSync(OwnedItems(vault), "/" + folder, settings, disk))
        changes = vault.changes()
        isWatching = false
    }

    /// Ends the process, if that has not happened already, and starts it again.
    func startAgain() async throws {
        syncs = nil
        vault = nil
        moments.disarm()
        disk.closeAll()
        vault = try await Vault.resume(settings)
        await vault?.attach(moments)
        try makeSyncs()
    }

    /// What has changed in the folder and the vault since this was asked last.
    private func takeFocus() async -> FolderFocus {
        let mark = ItemID.random()
        await vault?.notify([mark])
        var focus = FolderFocus(entries: disk.takeChanged())
        guard let changes else { return focus }
        for await ids in changes {
            if ids == [mark] { break }
            focus.items.formUnion(ids)
        }
        return focus
    }

    /// A round as that of a folder that is watched: it examines what has changed since the one before.
    func runWatching() async throws -> FolderReport {
        let sync = try #require(syncs).careful
        let focus = await takeFocus()
        let isWhole = !isWatching
        isWatching = true
        return try await Task { try await sync.run(within: isWhole ? nil : focus) }.value
    }

    func run(isAgreeing: Bool) async throws -> FolderReport {
        let syncs = try #require(syncs)
        let sync = isAgreeing ? syncs.agreeing : syncs.careful
        isWatching = false
        // In a task of its own, which may be cancelled.
        return try await Task { try await sync.run() }.value
    }

    // MARK: Of a person

    func files() -> [String: String] { disk.contents().filter { !$0.key.hasPrefix(FolderPath.corner + "/") } }

    /// What is in the folder's trash.
    func trash() -> [String] {
        disk.contents().filter { $0.key.hasPrefix(FolderPath.corner + "/trash/") }.map(\.value)
    }

    func unsentCount() async throws -> Int { try await vault?.unsentCount() ?? 0 }

    /// The number of items that are files.
    func fileCount() async throws -> Int {
        var count = 0
        for id in try await vault?.ids(folder) ?? [] where try await vault?.item(id)?.title?.hasSuffix("/") != true {
            count += 1
        }
        return count
    }

    func has(_ path: String) -> Bool { disk.personHas(path) }
    func put(_ text: String, at path: String) -> Bool { disk.personWrites(text, to: path) }
    func drop(_ path: String) -> Bool { disk.personRemoves(path) }
    func move(_ path: String, to other: String) -> Bool { disk.personRenames(path, other) }
    func clearEmptyFolders() { disk.personClearsEmptyFolders() }
    func makeFolder(_ path: String) -> Bool { disk.personMakesFolder(path) }
    func removeFolder(_ path: String) -> Bool { disk.personRemovesFolder(path) }
    func folders() -> Set<String> { disk.folders() }
}

/// What becomes of one seed.
final class FolderScenario {
    private let seed: UInt64
    private let devices: [MemoryDevice]
    private var random: SeededGenerator
    private let written = WrittenFiles()
    /// Devices whose rounds examine what has changed.
    private var watches: [ObjectIdentifier: Bool] = [:]
    /// File against folder, spellings of one name, and few of them, so that they meet.
    private let names = ["a", "A", "b.txt", "a/b", "a/B", "A/c", "c/d/e", "c/d", "\u{e4}", "a\u{308}"]

    init(_ seed: UInt64, _ person: MemoryPerson) throws {
        self.seed = seed
        devices = person.devices
        random = SeededGenerator(seed: seed)
        // Some disks do not tell "a" from "A".
        for device in devices {
            try device.begin("files-\(seed)", foldsCase: chance(3))
            watches[ObjectIdentifier(device)] = chance(2)
        }
    }

    func run() async throws {
        for _ in 0..<Int.random(in: 8...28, using: &random) { try await step(devices[randomIndex()]) }
        for device in devices { await device.link.deliverLate() }
        try await checkFocus()
        for device in devices { written.stopIgnoring(device) }
        try await converge()
        try await check()
    }

    private func step(_ device: MemoryDevice) async throws {
        if chance(2) {
            return written.edit(device, names, .random(using: &random, hasLong: false), random.next())
        }
        if chance(8) { await devices[randomIndex()].link.deliverLate() }
        if chance(3) { device.link.setBadFates(random.next()) }
        if chance(24) { device.link.expireCursor() }
        let mustEnd = arm(device)
        do {
            let report =
                watches[ObjectIdentifier(device)] == true
                ? try await device.runWatching() : try await device.run(isAgreeing: chance(3))
            written.note(device, "synced: \(report.summary)")
        } catch let error as FolderError {
            written.note(device, "stopped: \(error)")
            switch error {
            case .cancelled, .vault(.unavailable): break
            default: if !mustEnd { throw error }
            }
        }
        device.moments.disarm()
        device.link.setFate { .passes }
        device.link.setRewrite { $1 }
        if mustEnd { try await device.startAgain() }
    }

    /// - Returns: Whether the process has ended when the round is over.
    private func arm(_ device: MemoryDevice) -> Bool {
        let isOfWriting = chance(2)
        let moment = Moments.Moment(
            number: Int.random(in: 0..<(isOfWriting ? 40 : 300), using: &random), isOfWriting: isOfWriting)
        switch Int.random(in: 0..<8, using: &random) {
        case 0...2:
            device.moments.arm(moment, .end)
            written.note(device, "ends at \(moment)")
            return true
        case 3: device.moments.arm(moment, .other { withUnsafeCurrentTask { $0?.cancel() } })
        case 4...5:
            let (edit, state) = (FolderEdit.random(using: &random, hasLong: false), random.next())
            let (written, names) = (written, names)
            let editor = UncheckedFolder(device)
            device.moments.arm(moment, .other { written.edit(editor.folder, names, edit, state) })
        default: break
        }
        return false
    }

    /// After rounds of what has changed, a round of everything finds nothing to do.
    private func checkFocus() async throws {
        for device in devices where watches[ObjectIdentifier(device)] == true {
            var isQuiet = false
            for _ in 0..<8 where !isQuiet {
                let report = try await device.runWatching()
                let unsent = try await device.unsentCount()
                written.note(device, "watches: \(report.summary)")
                isQuiet = !report.hasDone && unsent == 0
            }
            let report = try await device.run(isAgreeing: false)
            written.note(device, "examines everything: \(report.summary)")
            // What elsewhere has been done meanwhile is nothing that it has missed.
            #expect(!isQuiet || !report.hasDone, "seed \(seed): \(device.name)\n\(written.trace)")
        }
    }

    private func converge() async throws {
        for _ in 0..<8 {
            var isQuiet = true
            for device in devices {
                let unsent = try await device.unsentCount()
                let report = try await device.run(isAgreeing: true)
                written.note(device, "converges: \(report.summary)")
                if unsent > 0 || report.hasDone { isQuiet = false }
            }
            if isQuiet { return }
        }
        Issue.record("seed \(seed): it never ends\n\(written.trace)")
    }

    private func check() async throws {
        let files = devices.map { $0.files() }
        let lists = files.map(Self.list)
        #expect(lists[0] == lists[1] && lists[1] == lists[2], "seed \(seed)\n\(written.trace)")
        for device in devices {
            let count = try await device.fileCount()
            #expect(count == files[0].count, "seed \(seed): \(device.name)\n\(written.trace)")
        }
        let folders = devices.map { Set($0.folders().map { $0.lowercased() }) }
        #expect(folders[0] == folders[1] && folders[1] == folders[2], "seed \(seed): \(folders)\n\(written.trace)")
        let trash = devices.reduce(into: Set<String>()) { $0.formUnion($1.trash()) }
        let lost = written.leaves.subtracting(files[0].values).subtracting(trash)
        #expect(lost.isEmpty, "seed \(seed): lost \(lost)\n\(written.trace)")
    }

    /// The files in their order. A disk that does not tell "a" from "A" has one of the two spellings of a folder.
    private static func list(_ files: [String: String]) -> [String] {
        files.map { path, text in
            let names = path.split(separator: "/")
            return names.dropLast().joined(separator: "/").lowercased() + "/" + (names.last ?? "") + ": " + text
        }.sorted()
    }

    private func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    private func randomIndex() -> Int { Int.random(in: 0..<3, using: &random) }
}

/// A device for an edit within its round: the edit happens while the scenario waits for the round.
private struct UncheckedFolder: @unchecked Sendable {
    let folder: MemoryDevice

    init(_ folder: MemoryDevice) { self.folder = folder }
}

extension FolderReport {
    var summary: String {
        "up \(uploaded), down \(downloaded), renamed \(renamed), conflicts \(conflicts), "
            + "deleted here \(deletedHere), there \(deletedThere), "
            + "folders \(fetchedFolders) \(sentFolders) \(removedFoldersHere) \(removedFoldersThere), ignored \(ignored), "
            + "\(isOffline ? "offline " : "")\(warnings.map { "\($0.kind.rawValue) \($0.path)" })"
    }

    /// Whether anything was not the same on both sides.
    var hasDone: Bool {
        let counts: [Int] = [
            uploaded.count, downloaded.count, renamed.count, conflicts.count, deletedHere.count, deletedThere.count,
            fetchedFolders.count, sentFolders.count, removedFoldersHere.count, removedFoldersThere.count,
        ]
        return counts.contains { $0 > 0 }
    }
}
