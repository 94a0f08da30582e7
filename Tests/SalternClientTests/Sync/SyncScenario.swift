import SalternTesting
import Testing

@testable import SalternClient

/// What becomes of one seed. Nothing in it depends on time: what happens within a sync happens at an exact point of one
/// of its exchanges, and what happens to a process at one of its store's system calls.
final class SyncScenario {
    let seed: UInt64
    let person: Person
    let server: LiveServer
    var random: SeededGenerator
    var incidents = Incidents()
    private let collections: [String]
    private var written = WrittenVersions()
    private var trashed: [[ItemID]] = [[], [], []]
    /// What a device did not tell the end of.
    private var begun: [WrittenStep?] = [nil, nil, nil]
    /// Whether the server has got a request so late that it could bring back what was long deleted.
    private var wasLate = false

    init(_ seed: UInt64, _ person: Person, _ server: LiveServer) {
        self.seed = seed
        self.person = person
        self.server = server
        random = SeededGenerator(seed: seed)
        collections = ["notes-\(seed)", "archive-\(seed)"]
    }

    func run() async throws {
        for _ in 0..<Int.random(in: 8...22, using: &random) {
            try await step(Int.random(in: 0..<3, using: &random))
            for index in 0..<3 { try await goOnAfterFault(index) }
        }
        for (index, device) in person.devices.enumerated() {
            try await deliverLate(device)
            _ = person.devices[index].life.disarm()
        }
        try await converge()
        try await check()
    }

    private func step(_ index: Int) async throws {
        if random.chance(oneIn: 12) {
            try await person.startAgain(index, random.chance(oneIn: 3) ? randomFault(within: 12) : nil)
        }
        if random.chance(oneIn: 8) { try await deliverLate(person.devices[Int.random(in: 0..<3, using: &random)]) }
        if random.chance(oneIn: 4) {
            let fault = randomFault(within: 80)
            person.devices[index].life.arm(fault.kind, at: fault.call)
        }
        let vault = try person.vault(index)
        // In an order that does not depend on ids, because those of copies are random.
        let present = try await present(vault).sorted { ($0.value, $0.key) < ($1.value, $1.key) }
        switch Int.random(in: 0..<188, using: &random) {
        case 0..<45: try await write(over: nil, index)
        case 45..<75: try await write(over: present.randomElement(using: &random), index)
        case 75..<90: try await rename(present.randomElement(using: &random), index)
        case 90..<105:
            guard let (id, seen) = present.randomElement(using: &random) else { return }
            try await carryOut(.delete(id, seen: seen), index) { try await owned(vault).delete(id) }
            trashed[index].append(id)
        case 105..<120:
            guard let id = trashed[index].popLast(), try await owned(vault).item(id) == nil else { return }
            try await carryOut(.restore(id), index) { try await owned(vault).restore(id) }
        case 120..<150: try await editWithinSync(vault, present.randomElement(using: &random), index)
        case 150..<179: try await syncBadly(vault, person.devices[index].link)
        case 180..<188:
            // A request of before would come with bytes that nobody can open any more.
            for device in person.devices { try await deliverLate(device) }
            if let shared = person.shared, random.chance(oneIn: 2) { return shared.rotate() }
            try await rotateBadly(vault, person.devices[index].link)
        case _ where person.shared != nil:
            // The stream of the other account's items is not that of a vault.
            try await syncBadly(vault, person.devices[index].link)
        default: try await follow(index, sender: (index + Int.random(in: 1...2, using: &random)) % 3)
        }
    }

    /// The owner of the items.
    var owner: ItemOwner { person.shared.map { .vault($0.id) } ?? .account }

    func owned(_ vault: Vault) -> OwnedItems { OwnedItems(vault, of: owner) }

    // MARK: What a person does

    /// - Returns: Where it was written.
    @discardableResult
    func write(over seen: (key: ItemID, value: WrittenVersion)?, _ index: Int) async throws -> ItemID {
        let (id, version) = next(over: seen)
        let vault = try person.vault(index)
        try await carryOut(.write(version, over: seen?.value), index) {
            try await owned(vault).put(version.item, id, in: version.collection)
        }
        return id
    }

    private func next(over seen: (key: ItemID, value: WrittenVersion)?) -> (ItemID, WrittenVersion) {
        var version = seen?.value ?? WrittenVersion(collection: collections[0], title: nil, text: "")
        version.text = written.name("version")
        return (seen?.key ?? newID(), version)
    }

    /// Another title, and sometimes another collection.
    private func rename(_ seen: (key: ItemID, value: WrittenVersion)?, _ index: Int) async throws {
        guard let (id, seen) = seen else { return }
        var version = seen
        version.title = written.name("title")
        if random.chance(oneIn: 3) { version.collection = collections[seen.collection == collections[0] ? 1 : 0] }
        let (vault, next) = (try person.vault(index), version)
        try await carryOut(.write(next, over: seen), index) {
            try await owned(vault).put(next.item, id, in: next.collection)
        }
    }

    /// A person goes on writing while a round is under way.
    private func editWithinSync(
        _ vault: Vault, _ seen: (key: ItemID, value: WrittenVersion)?, _ index: Int
    ) async throws {
        let link = person.devices[index].link
        let (id, version) = next(over: seen)
        let items = owned(vault)
        let known = if let seen { try await items.version(of: seen.key) } else { nil as ItemVersion? }
        try await carryOut(.write(version, over: seen?.value), index) {
            try await interruptSync(vault, link) {
                try await items.put(version.item, id, in: version.collection, over: known)
            }
        }
    }

    /// Notes what a person has done when it has returned; when a process has ended or a disk has failed meanwhile, the
    /// device is looked at afterwards.
    private func carryOut(_ step: WrittenStep, _ index: Int, _ body: () async throws -> Void) async throws {
        do {
            try await body()
            if case .restore = step {
                written.note(step, try await present(person.vault(index)))
            } else {
                written.note(step, [:])
            }
        } catch VaultError.store where person.devices[index].life.hasFailed {
            begun[index] = step
        }
    }

    private func goOnAfterFault(_ index: Int) async throws {
        if person.devices[index].life.hasEnded {
            incidents.kills += 1
            try await person.startAgain(index, random.chance(oneIn: 4) ? randomFault(within: 12) : nil)
        } else if person.devices[index].life.hasFailed {
            incidents.failures += 1
            _ = person.devices[index].life.disarm()
        }
        guard let step = begun[index].take() else { return }
        let present = try await present(person.vault(index))
        if step.hasHappened(present) { written.note(step, present) }
    }

    private func present(_ vault: Vault) async throws -> [ItemID: WrittenVersion] {
        var versions: [ItemID: WrittenVersion] = [:]
        for collection in collections {
            let (items, sealed) = try await vault.items(collection, of: owner)
            // In a shared vault a version waits for its key after an interrupted sync.
            guard sealed.isEmpty || person.shared != nil else { throw VaultError.unreadable }
            for (id, (item, _)) in items { versions[id] = WrittenVersion(item, in: collection) }
        }
        return versions
    }

    private func deliverLate(_ device: Device) async throws {
        if await device.link.deliverLate() > 0 { wasLate = true }
    }

    // MARK: The end

    /// Every device syncs until none has anything new.
    private func converge() async throws {
        for _ in 0..<8 {
            var isQuiet = true
            for index in 0..<3 {
                let vault = try person.vault(index)
                var report = try await vault.sync(loggingInWith: person.password)
                report = report.of(owner)
                if report.isHeld { report = try await owned(vault).agreeToDeletions() }
                if report.fetched + report.sent > 0 { isQuiet = false }
            }
            if isQuiet { return }
        }
    }

    private func check() async throws {
        var contents: [[ItemID: WrittenVersion]] = []
        var kinds: Set<Notice.Kind> = [.conflict, .keptAfterDeletion, .deletionUndone, .massDeletion]
        if wasLate { kinds.insert(.rolledBack) }
        for index in 0..<3 {
            let vault = try person.vault(index)
            contents.append(try await present(vault))
            #expect(try await owned(vault).unsentCount() == 0, "seed \(seed)")
            for notice in try await owned(vault).notices() {
                #expect(kinds.contains(notice.kind), "seed \(seed)")
                try await vault.forget(notice, of: owner)
            }
        }
        #expect(contents[0] == contents[1] && contents[1] == contents[2], "seed \(seed)")
        let lost = written.leaves.subtracting(contents[0].values)
        #expect(lost.isEmpty, "seed \(seed): lost \(lost)")
        // An old version that comes late is kept beside the known one, wherever that has gone meanwhile.
        let twice = wasLate ? [] : contents[0].values.equalOnes.subtracting(written.restored)
        #expect(twice.isEmpty, "seed \(seed): twice \(twice)")
    }

    // MARK: Choices

    func newID() -> ItemID { .random(using: &random) }

    private func randomFault(within calls: Int) -> (kind: WriteFault, call: Int) {
        (WriteFault.allCases.randomElement(using: &random) ?? .killBefore, Int.random(in: 1...calls, using: &random))
    }
}
