import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What becomes of one seed of ``TypeVersionPropertyTests``.
final class VersionScenario {
    struct Incidents {
        var edits = 0
        var conflicts = 0
        var kills = 0
        var failures = 0
        var lostExchanges = 0
        var removals = 0

        mutating func add(_ other: Incidents) {
            edits += other.edits
            conflicts += other.conflicts
            kills += other.kills
            failures += other.failures
            lostExchanges += other.lostExchanges
            removals += other.removals
        }

        var hasEverything: Bool {
            ![edits, conflicts, kills, failures, lostExchanges, removals].contains(0)
        }
    }

    private typealias Marks = MarkedVersions.Marks

    let seed: UInt64
    private let devices: [MortalDevice]
    private let collection: String
    private var random: SeededGenerator
    private(set) var incidents = Incidents()
    /// Marks that were written and acknowledged, and that no version has removed that knows them.
    private var expected: Set<String> = []
    private var count = 0

    init(_ seed: UInt64, _ devices: [MortalDevice]) {
        self.seed = seed
        self.devices = devices
        collection = "notes-\(seed)"
        random = SeededGenerator(seed: seed)
    }

    /// - Parameter areMerging: Whether each device merges, as one of the versions. Otherwise both versions are kept.
    static func devices(areMerging: Bool) async throws -> [MortalDevice] {
        let server = MemoryServer()
        var devices: [MortalDevice] = []
        for (index, name) in ["phone", "laptop", "tablet"].enumerated() {
            let device = try await MortalDevice(name, server, isFirst: index == 0) { settings in
                guard areMerging else { return }
                for seed in PropertyTests.seeds { settings.merge(asVersion: index, "notes-\(seed)") }
            }
            devices.append(device)
        }
        return devices
    }

    func run() async throws {
        try await devices[0].vault().collection(collection).put(
            MarkedVersions.First(words: newMark(), labels: (1...3).map { .init(id: $0, names: [:]) }))
        expected = ["mark-1"]
        for device in devices { try await device.vault().sync() }
        for _ in 0..<Int.random(in: 8...20, using: &random) {
            let index = Int.random(in: 0..<3, using: &random)
            if random.chance(oneIn: 4) {
                let fault = WriteFault.allCases.randomElement(using: &random) ?? .killBefore
                devices[index].life.arm(fault, at: Int.random(in: 1...30, using: &random))
            }
            if random.chance(oneIn: 10) { try await devices[index].startAgain() }
            if random.chance(oneIn: 3) { try await sync(devices[index]) } else { try await edit(devices[index]) }
            try await goOn(devices[index])
        }
        for device in devices { _ = device.life.disarm() }
        try await converge()
        try await check()
    }

    private func goOn(_ device: MortalDevice) async throws {
        if device.life.hasEnded {
            incidents.kills += 1
            try await device.startAgain()
        } else if device.life.disarm() {
            incidents.failures += 1
        }
    }

    private func sync(_ device: MortalDevice) async throws {
        if random.chance(oneIn: 2) {
            incidents.lostExchanges += 1
            device.link.setBadFates(random.next(), areLate: false)
        }
        defer { device.link.setFate { .passes } }
        do { try await device.vault().sync() } catch VaultError.unavailable {
            // Offline.
        } catch VaultError.store where device.life.hasFailed {
            // Nothing was acknowledged.
        }
    }

    // MARK: Edits

    private func newMark() -> Marks {
        count += 1
        return ["mark-\(count)": count]
    }

    /// Adds a mark somewhere, as one of the versions, or removes what that version knows.
    private func edit(_ device: MortalDevice) async throws {
        let vault = try device.vault()
        let ids = try await vault.ids(collection)
        // Ids of copies are random.
        var items: [(id: ItemID, text: String)] = []
        for id in ids { items.append((id, try await vault.item(id)?.json ?? "")) }
        guard let (id, _) = items.sorted(by: { $0.text < $1.text }).randomElement(using: &random) else { return }
        incidents.edits += 1
        let mark = newMark()
        do {
            let removed =
                switch Int.random(in: 0..<3, using: &random) {
                case 0: try await editAsFirst(id, vault, mark)
                case 1: try await editAsSecond(id, vault, mark)
                default: try await editAsThird(id, vault, mark)
                }
            expected.formUnion(mark.keys)
            expected.subtract(removed)
        } catch VaultError.store where device.life.hasFailed {
            // It may have happened: what it would have removed is not expected any more.
            expected.subtract(removable)
        }
    }

    /// The marks that the last edit removes.
    private var removable: Set<String> = []

    private func editAsFirst(_ id: ItemID, _ vault: Vault, _ mark: Marks) async throws -> Set<String> {
        let notes = vault.collection(collection, of: MarkedVersions.First.self)
        var note = try #require(await notes[id])
        removable = []
        if random.chance(oneIn: 2) {
            note.words.merge(mark) { $1 }
        } else {
            note.labels[Int.random(in: 0..<3, using: &random)].names.merge(mark) { $1 }
        }
        try await notes.put(note, id)
        return []
    }

    private func editAsSecond(_ id: ItemID, _ vault: Vault, _ mark: Marks) async throws -> Set<String> {
        let notes = vault.collection(collection, of: MarkedVersions.Second.self)
        var note = try #require(await notes[id])
        removable = []
        if random.chance(oneIn: 6) {
            incidents.removals += 1
            // With the place go its streets, which this version does not know.
            let before = try #require(await vault.collection(collection, schema: MarkedVersions.third)[id])
            removable = Set((note.pins ?? [:]).keys).union(before.place?.towns.keys.map(\.self) ?? [])
                .union(before.place?.streets?.keys.map(\.self) ?? [])
            (note.pins, note.place) = (nil, nil)
            note.words.merge(mark) { $1 }
        } else if random.chance(oneIn: 2) {
            note.pins = MarkedVersions.union(note.pins, mark)
        } else {
            note.place = .init(towns: MarkedVersions.union(note.place?.towns, mark) ?? [:])
        }
        try await notes.put(note, id)
        return removable
    }

    private func editAsThird(_ id: ItemID, _ vault: Vault, _ mark: Marks) async throws -> Set<String> {
        let notes = vault.collection(collection, schema: MarkedVersions.third)
        var note = try #require(await notes[id])
        removable = []
        let label = Int.random(in: 0..<3, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            incidents.removals += 1
            removable = Set((note.scores ?? [:]).keys).union(note.labels[label].hues?.keys.map(\.self) ?? [])
            (note.scores, note.labels[label].hues) = (nil, nil)
            note.words.merge(mark) { $1 }
        case 1, 2: note.labels[label].hues = MarkedVersions.union(note.labels[label].hues, mark)
        case 3:
            var place = note.place ?? .init(towns: [:])
            place.streets = MarkedVersions.union(place.streets, mark)
            note.place = place
        case 4:
            note.labels.swapAt(0, label)
            note.words.merge(mark) { $1 }
        default: note.scores = MarkedVersions.union(note.scores, mark)
        }
        try await notes.put(note, id)
        return removable
    }

    // MARK: The end

    private func converge() async throws {
        for _ in 0..<8 {
            var isQuiet = true
            for device in devices {
                let report = try await device.vault().sync()
                if report.fetched + report.sent > 0 { isQuiet = false }
            }
            if isQuiet { return }
        }
        Issue.record("seed \(seed): the devices do not come to rest")
    }

    private func check() async throws {
        var texts: [[String]] = []
        for device in devices {
            let vault = try device.vault()
            var found: [String] = []
            for (item, _) in try await vault.items(collection).opened.values { found.append(item.json) }
            texts.append(found.sorted())
            let present = Set(found.flatMap { JSONTree(Array($0.utf8))?.marks ?? [] })
            #expect(expected.isSubset(of: present), "seed \(seed): lost \(expected.subtracting(present).sorted())")
            #expect(try await vault.unsentCount() == 0, "seed \(seed)")
        }
        incidents.conflicts += texts[0].count - 1
        #expect(texts[1] == texts[0] && texts[2] == texts[0], "seed \(seed)")
    }
}

extension PlainItem {
    fileprivate var json: String { String(decoding: body.withUnsafeBytes { [UInt8]($0) }, as: UTF8.self) }
}

extension JSONTree {
    /// All names of members that are marks, at any depth.
    fileprivate var marks: Set<String> {
        switch self {
        case .object(let members):
            members.reduce(into: []) { marks, member in
                let name = String(decoding: member.key.utf8, as: UTF8.self)
                if name.hasPrefix("mark-") { marks.insert(name) }
                marks.formUnion(member.value.marks)
            }
        case .array(let elements): elements.reduce(into: []) { $0.formUnion($1.marks) }
        case .string, .literal: []
        }
    }
}

extension VaultSettings {
    /// Merges as one of the versions.
    fileprivate mutating func merge(asVersion version: Int, _ collection: String) {
        switch version {
        case 0: merge(collection, of: MarkedVersions.First.self) { $1.merged($2) }
        case 1: merge(collection, of: MarkedVersions.Second.self) { $1.merged($2) }
        default: merge(collection, of: MarkedVersions.Third.self, schema: MarkedVersions.third) { $1.merged($2) }
        }
    }
}
