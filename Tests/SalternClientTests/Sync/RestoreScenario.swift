import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Three devices of one person, and a server in memory that is restored from backups while they hold what came after those.
final class RestoredPerson {
    let server = MemoryServer()
    let links: [LossyTransport]
    private let folders: [TemporaryDirectory]
    private let settings: [VaultSettings]
    private(set) var vaults: [Vault?] = []

    init() async throws {
        let server = server
        links = (0..<3).map { _ in LossyTransport(server) }
        folders = try (0..<3).map { _ in try TemporaryDirectory(.memory) }
        settings = zip(folders, zip(links, ["phone", "laptop", "tablet"])).map {
            .forTests(folder: $0.path, $1.0, name: $1.1)
        }
        let password = Password("password")
        for settings in settings {
            vaults.append(
                vaults.isEmpty
                    ? try await Vault.signUp(settings, userid: "ada@example.org", password: password)
                    : try await Vault.logIn(settings, userid: "ada@example.org", password: password))
        }
    }

    func vault(_ index: Int) throws -> Vault { try #require(vaults[index]) }

    /// Ends the device's process and starts it again.
    func startAgain(_ index: Int) async throws {
        vaults[index] = nil
        vaults[index] = try await Vault.resume(settings[index])
    }

    /// Every device syncs until none has anything new.
    func converge() async throws {
        for _ in 0..<8 {
            var isQuiet = true
            for index in 0..<3 {
                let vault = try vault(index)
                var report = try await vault.sync()
                if report.isHeld { report = try await vault.agreeToDeletions() }
                if report.fetched + report.sent > 0 { isQuiet = false }
            }
            if isQuiet { return }
        }
    }
}

/// What becomes of one seed.
final class RestoreScenario {
    private let seed: UInt64
    private let person: RestoredPerson
    private var random: SeededGenerator
    private var written = WrittenVersions()
    private var trashed: [[ItemID]] = [[], [], []]
    private var backups: [MemoryServer.Backup]
    private(set) var restores = 0

    private static let collection = "notes"

    init(_ seed: UInt64) async throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        person = try await RestoredPerson()
        backups = [person.server.backUp()]
    }

    func run() async throws {
        for _ in 0..<Int.random(in: 12...36, using: &random) { try await step(Int.random(in: 0..<3, using: &random)) }
        try await person.converge()
        try await check()
    }

    private func step(_ index: Int) async throws {
        if random.chance(oneIn: 12) { try await person.startAgain(index) }
        let vault = try person.vault(index)
        // In an order that does not depend on ids, because those of copies are random.
        let present = try await present(vault).sorted { ($0.value, $0.key) < ($1.value, $1.key) }
        let seen = present.randomElement(using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<18: try await write(WrittenVersion(collection: Self.collection, title: nil, text: ""), nil, vault)
        case 18..<36: if let seen { try await write(seen.value, seen, vault) }
        case 36..<42:
            guard let (id, version) = seen else { return }
            try await vault.delete(id)
            written.note(.delete(id, seen: version), [:])
            trashed[index].append(id)
        case 42..<46:
            guard let id = trashed[index].popLast(), try await vault.item(id) == nil else { return }
            try await vault.restore(id)
            written.note(.restore(id), try await self.present(vault))
        case 46..<54: backups.append(person.server.backUp())
        case 54..<60: goBack()()
        default: try await sync(index)
        }
    }

    private func write(_ before: WrittenVersion, _ seen: (key: ItemID, value: WrittenVersion)?, _ vault: Vault)
        async throws
    {
        var version = before
        if random.chance(oneIn: 4) { version.title = written.name("title") }
        version.text = written.name("version")
        try await vault.put(version.item, seen?.key ?? .random(using: &random), in: version.collection)
        written.note(.write(version, over: seen?.value), [:])
    }

    private func goBack() -> @Sendable () -> Void {
        restores += 1
        let (server, backup) = (person.server, backups[Int.random(in: backups.indices, using: &random)])
        return { server.restore(backup) }
    }

    /// A sync in which exchanges are lost, or the database is restored.
    private func sync(_ index: Int) async throws {
        let (vault, link) = (try person.vault(index), person.links[index])
        if random.chance(oneIn: 2) {
            let random = Mutex(SeededGenerator(seed: random.next()))
            let fates: [LossyTransport.Fate] = [.losesRequest, .losesReply, .losesReply, .repeats, .passes, .passes]
            link.setFate { random.withLock { fates.randomElement(using: &$0) } ?? .passes }
        }
        if random.chance(oneIn: 12) {
            let moment = LossyTransport.Moment.allCases.randomElement(using: &random) ?? .beforeReply
            let exchange = Int.random(in: 0..<4, using: &random)
            let goBack = goBack()
            link.interrupt(LossyTransport.Interruption(exchange: exchange, moment: moment) { goBack() })
        }
        do {
            _ = try await Task { try await vault.sync() }.value
        } catch VaultError.unavailable {
            // Offline.
        }
        link.setFate { .passes }
        _ = link.endInterruption()
    }

    private func present(_ vault: Vault) async throws -> [ItemID: WrittenVersion] {
        let (items, sealed) = try await vault.items(Self.collection)
        guard sealed.isEmpty else { throw VaultError.unreadable }
        return items.mapValues { WrittenVersion($0.item, in: Self.collection) }
    }

    private func check() async throws {
        var contents: [[ItemID: WrittenVersion]] = []
        for index in 0..<3 {
            contents.append(try await present(person.vault(index)))
            #expect(try await person.vault(index).unsentCount() == 0, "seed \(seed)")
        }
        #expect(contents[0] == contents[1] && contents[1] == contents[2], "seed \(seed)")
        // A tombstone deletes also what its author cannot have seen because it was lost: it is in the trash.
        var trash: Set<WrittenVersion> = []
        for index in 0..<3 { trash.formUnion(try await person.vault(index).trash(Self.collection)) }
        let lost = written.leaves.subtracting(contents[0].values).subtracting(trash)
        #expect(lost.isEmpty, "seed \(seed): lost \(lost)")
        let twice = contents[0].values.equalOnes.subtracting(written.restored)
        #expect(twice.isEmpty, "seed \(seed): twice \(twice)")
    }
}

extension Vault {
    fileprivate func trash(_ collection: String) throws -> [WrittenVersion] {
        let sealer = try engine.sealer
        let ids = try store.database.rows("SELECT id FROM trash") { row in try Store.id(row, 0) }
        return try ids.compactMap { id in
            guard let item = try store.trashed(id) else { return nil }
            return try WrittenVersion(sealer.open(item.content, id).item, in: collection)
        }
    }
}
