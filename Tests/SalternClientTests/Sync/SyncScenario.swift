import SalternClient
import Synchronization
import Testing

/// What becomes of one seed. Nothing in it depends on time: what happens within a sync happens at an exact point of one
/// of its exchanges.
final class SyncScenario {
    private let seed: UInt64
    private let person: Person
    private let server: LiveServer
    private var random: SeededRandom
    private let collection: String
    private var written = Written()
    private var trashed: [[ItemID]] = [[], [], []]
    /// Whether the server has got a request so late that it could bring back what was long deleted.
    private var wasLate = false

    init(_ seed: UInt64, _ person: Person, _ server: LiveServer) {
        self.seed = seed
        self.person = person
        self.server = server
        random = SeededRandom(state: seed)
        collection = "notes-\(seed)"
    }

    func run() async throws {
        for _ in 0..<Int.random(in: 8...28, using: &random) { try await step(Int.random(in: 0..<3, using: &random)) }
        for device in person.devices { try await deliverLate(device) }
        try await converge()
        try await check()
    }

    private func step(_ index: Int) async throws {
        if chance(12) { try await person.startAgain(index) }
        if chance(8) { try await deliverLate(person.devices[Int.random(in: 0..<3, using: &random)]) }
        let vault = try person.vault(index)
        let notes = vault.collection(collection, of: Note.self)
        // In an order that does not depend on ids, because those of copies are random.
        let present = try await notes.all().map { (id: $0.key, text: $0.value.text) }.sorted {
            ($0.text, $0.id) < ($1.text, $1.id)
        }
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2:
            try await notes.put(Note(text: written.write(over: nil)), newID())
        case 3...5:
            guard let (id, seen) = present.randomElement(using: &random) else { return }
            try await notes.put(Note(text: written.write(over: seen)), id)
        case 6:
            guard let (id, seen) = present.randomElement(using: &random) else { return }
            try await notes.delete(id)
            written.leaves.remove(seen)
            trashed[index].append(id)
        case 7:
            guard let id = trashed[index].popLast(), try await notes[id] == nil else { return }
            try await notes.restore(id)
            written.leaves.insert(try #require(try await notes[id]).text)
        case 8...9:
            try await editWithinSync(notes, vault, present.randomElement(using: &random), person.devices[index].link)
        default:
            try await syncBadly(vault, person.devices[index].link)
        }
    }

    /// A person goes on writing while a round is under way.
    private func editWithinSync(
        _ notes: VaultCollection<Note>, _ vault: Vault, _ seen: (id: ItemID, text: String)?, _ link: LossyTransport
    ) async throws {
        let version = if let seen { try await notes.version(of: seen.id) } else { nil as ItemVersion? }
        let note = Note(text: written.write(over: seen?.text))
        let id = seen?.id ?? newID()
        let failure = Mutex<(any Error)?>(nil)
        link.interrupt(
            LossyTransport.Interruption(exchange: Int.random(in: 0..<3, using: &random), moment: randomMoment()) {
                do { try await notes.put(note, id, over: version) } catch { failure.withLock { $0 = error } }
            })
        if chance(2) { setBadFate(link) }
        try await syncOrFail(vault, link)
        await link.endInterruption()?.body()
        if let error = failure.withLock({ $0 }) { throw error }
    }

    /// A sync during which something goes wrong, or nothing.
    private func syncBadly(_ vault: Vault, _ link: LossyTransport) async throws {
        if chance(2) { setBadFate(link) }
        let exchange = Int.random(in: 0..<4, using: &random)
        if chance(5) {
            link.interrupt(
                LossyTransport.Interruption(exchange: exchange, moment: randomMoment()) {
                    withUnsafeCurrentTask { $0?.cancel() }
                })
        } else if chance(50) {
            let (server, links, seed) = (server, person.devices.map(\.link), seed)
            let patience: Duration = chance(2) ? .seconds(1) : .milliseconds(1)
            link.interrupt(
                LossyTransport.Interruption(exchange: exchange, moment: randomMoment()) {
                    do {
                        try await server.restart(timeout: patience)
                        for link in links { link.change(to: try CurlTransport(server.address())) }
                    } catch {
                        Issue.record("seed \(seed): \(error)")
                    }
                })
        }
        if chance(24) { link.expireCursor() }
        try await syncOrFail(vault, link)
        _ = link.endInterruption()
    }

    private func setBadFate(_ link: LossyTransport) {
        let random = Mutex(SeededRandom(state: random.next()))
        link.setFate {
            random.withLock { random in
                switch Int.random(in: 0..<9, using: &random) {
                case 0: .losesRequest
                case 1, 2: .losesReply
                case 3: .repeats
                case 4: .arrivesLate
                default: .passes
                }
            }
        }
    }

    private func syncOrFail(_ vault: Vault, _ link: LossyTransport) async throws {
        do {
            // In a task of its own, which may be cancelled.
            _ = try await Task { try await vault.sync() }.value
        } catch VaultError.unavailable {
            // Offline, or cut off.
        }
        link.setFate { .passes }
        link.setRewrite { $1 }
    }

    private func deliverLate(_ device: Device) async throws {
        if await device.link.deliverLate() > 0 { wasLate = true }
    }

    /// Every device syncs until none has anything new.
    private func converge() async throws {
        for _ in 0..<8 {
            var isQuiet = true
            for index in 0..<3 {
                let vault = try person.vault(index)
                var report = try await vault.sync()
                if report.isHeld { report = try await vault.agreeToDeletions() }
                if report.fetched + report.sent > 0 { isQuiet = false }
            }
            if isQuiet { return }
        }
    }

    private func check() async throws {
        var contents: [[ItemID: String]] = []
        var kinds: Set<Notice.Kind> = [.conflict, .keptAfterDeletion, .deletionUndone, .massDeletion]
        if wasLate { kinds.insert(.rolledBack) }
        for index in 0..<3 {
            let vault = try person.vault(index)
            contents.append(try await vault.collection(collection, of: Note.self).all().mapValues(\.text))
            #expect(try await vault.unsentCount() == 0, "seed \(seed)")
            for notice in try await vault.notices() {
                #expect(kinds.contains(notice.kind), "seed \(seed)")
                try await vault.forget(notice)
            }
        }
        #expect(contents[0] == contents[1] && contents[1] == contents[2], "seed \(seed)")
        let texts = Set(contents[0].values)
        #expect(written.leaves.isSubset(of: texts), "seed \(seed): lost \(written.leaves.subtracting(texts))")
    }

    // MARK: Choices

    private func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    private func newID() -> ItemID { .random(using: &random) }

    private func randomMoment() -> LossyTransport.Moment {
        LossyTransport.Moment.allCases.randomElement(using: &random) ?? .beforeReply
    }
}

/// Which texts a person wrote and has not replaced or deleted where they could see them.
private struct Written {
    var leaves: Set<String> = []
    var count = 0

    mutating func write(over seen: String?) -> String {
        count += 1
        let text = "version \(count)"
        if let seen { leaves.remove(seen) }
        leaves.insert(text)
        return text
    }
}

/// SplitMix64.
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}

extension Identifier {
    static func random(using random: inout SeededRandom) -> Self {
        let bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
        return Self(bytes: bytes) ?? .random()
    }
}
