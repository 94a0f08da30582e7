import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// No sweep removes a chunk that something names: two devices, attachments in manifests and in values, added online and
/// offline, copied, replaced, deleted, restored from the trash and from replaced versions, with sweeps in between, while
/// weeks pass. And what nothing names goes.
///
/// A scenario is its seed: see ``PropertyTests``.
@Suite struct SweepPropertyTests {
    @Test func `what is named stays, and what is not goes`() async throws {
        try await LiveServer.with { server in
            var sums = SweepScenario.Counts()
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 12000")
            for seed in PropertyTests.slow {
                do {
                    let scenario = try await SweepScenario(seed, server)
                    try await scenario.run()
                    sums.add(scenario.counts)
                } catch {
                    Issue.record("seed \(seed): \(error)")
                }
            }
            print("seeds \(PropertyTests.slow): \(sums)")
            #expect(sums.swept > 0 && sums.restored > 0 && sums.offline > 0 && sums.nested > 0)
        }
    }
}

/// One account with two devices.
private final class SweepScenario {
    struct Counts {
        var swept = 0
        var restored = 0
        var offline = 0
        var nested = 0

        mutating func add(_ other: Counts) {
            swept += other.swept
            restored += other.restored
            offline += other.offline
            nested += other.nested
        }
    }

    private struct Album: Codable, Sendable {
        var pages: [[String: SalternClient.Attachment]]
    }

    private let seed: UInt64
    private let server: LiveServer
    private var random: SeededGenerator
    private var devices: [Device] = []
    private var vaults: [Vault] = []
    private var isOffline = [false, false]
    private var syncedAt: [Int64] = [0, 0]
    private let ids = (0..<4).map { _ in ItemID.random() }
    private var day: Int64 = 0
    /// By device: the last day on which one of its items named the chunk.
    private var namedAt: [[ItemID: Int64]] = [[:], [:]]
    private(set) var counts = Counts()

    init(_ seed: UInt64, _ server: LiveServer) async throws {
        self.seed = seed
        self.server = server
        random = SeededGenerator(seed: seed)
        let password = Password("password")
        for name in ["phone", "laptop"] {
            var device = try Device(name, server)
            // Copies would hide that the server lacks something.
            device.settings.attachments = AttachmentStorage(copiedByteLimit: 0)
            devices.append(device)
        }
        let userid = "person-\(seed)@example.org"
        vaults = [
            try await Vault.signUp(devices[0].settings, userid: userid, password: password),
            try await Vault.logIn(devices[1].settings, userid: userid, password: password),
        ]
        for vault in vaults {
            _ = try await vault.account()
            // They would note the age of the real clock, which is 1 on each day of the scenario.
            try await vault.stopSweepsOfSyncs()
        }
    }

    private var one: Int { Int.random(in: 0...1, using: &random) }
    private var anyID: ItemID { ids.randomElement(using: &random) ?? ids[0] }

    func run() async throws {
        for _ in 0..<30 {
            let device = one
            switch Int.random(in: 0..<12, using: &random) {
            case 0...2: try await attach(device)
            case 3: try await copy(device)
            case 4: try await put(SecureBytes(copying: [1, 2, UInt8(day & 0x7f)]), anyID, device)
            case 5: try await vaults[device].delete(anyID)
            case 6: try await restore(device)
            case 7: setOffline(device, !isOffline[device])
            case 8, 9: try await sync(device)
            default: try await passTime(device)
            }
        }
        try await end()
    }

    // MARK: Steps

    private func setOffline(_ device: Int, _ isOffline: Bool) {
        self.isOffline[device] = isOffline
        devices[device].link.setUnreachable(isOffline)
    }

    private func attach(_ device: Int) async throws {
        let id = anyID
        let before = try await attachments(id, device).first
        let count = Int.random(in: 4_200...9_000, using: &random)
        let byte = UInt8.random(in: 0...255, using: &random)
        // A later version shares its first chunk with the one before.
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 / 2_048 + ($0 < 2_048 ? 0 : Int(byte))) }
        let made = try await vaults[device].attach(
            AttachmentSource(SecureBytes(copying: bytes)), id: Bool.random(using: &random) ? before?.id : nil)
        if isOffline[device] { counts.offline += 1 }
        try await put([made], id, device)
    }

    private func copy(_ device: Int) async throws {
        let found = try await attachments(anyID, device) + attachments(anyID, device)
        if !found.isEmpty { try await put(found, anyID, device) }
    }

    private func restore(_ device: Int) async throws {
        let (id, vault) = (anyID, vaults[device])
        // For other devices a month may nearly be over: such an edit must not wait.
        setOffline(device, false)
        try await sync(device)
        if Bool.random(using: &random) {
            guard try await vault.item(id) == nil, (try? await vault.restore(id)) != nil else { return }
        } else {
            guard let version = try await vault.replacedVersions(of: id).randomElement(using: &random) else { return }
            try await vault.restore(id, replaced: version.number)
        }
        counts.restored += 1
        // Another device may have swept what no item of its own named for a month.
        let chunks = Set(try await attachments(id, device).flatMap(\.chunks))
        let there = try await vault.chunksOnServer().union(vault.chunksWaiting())
        if !there.isSuperset(of: chunks) { try await put(SecureBytes(copying: [0]), id, device) }
        try await sync(device)
    }

    private func sync(_ device: Int) async throws {
        if isOffline[device] { return }
        _ = try? await vaults[device].sync()
        syncedAt[device] = day
    }

    /// Some days pass, and a device sweeps. No device is away for a month.
    private func passTime(_ device: Int) async throws {
        try await noteNamed()
        let step = Int64.random(in: 1...20, using: &random)
        for other in 0...1 where day + step - syncedAt[other] > 25 {
            setOffline(other, false)
            try await sync(other)
        }
        try await noteNamed()
        try await advance(by: step)
        guard !isOffline[device] else { return }
        try await sweep(device)
    }

    /// Moves the times at which the server got its chunks into the past, on the server and on both devices. A chunk that is
    /// written again has the present time.
    private func advance(by days: Int64) async throws {
        day += days
        try await server.makeChunksOlder(days: days)
        for vault in vaults { try await vault.makeChunksOlder(days: days) }
    }

    private func sweep(_ device: Int) async throws {
        let (vault, age) = (vaults[device], 1 + day * 86_400)
        try await vault.removeAged(at: age)
        _ = try await vault.sync()
        syncedAt[device] = day
        try await noteNamed()
        let before = try await vault.chunksOnServer()
        let own = try await vault.everythingNamed()
        counts.swept += try await vault.sweepChunks(at: Date(), age: age)
        try await vault.forgetUnnamedWaiting(at: age)
        let removed = before.subtracting(try await vault.chunksOnServer())
        #expect(removed.isDisjoint(with: own), "seed \(seed), day \(day)")
        let waiting = try await vaults[1 - device].chunksWaiting()
        for chunk in removed {
            #expect(day - (namedAt[device][chunk] ?? 0) >= 30, "seed \(seed), day \(day)")
            // Nor does the other device name it in an edit that it has not sent, unless it also sends the content.
            #expect(
                namedAt[1 - device][chunk] != day || waiting.contains(chunk), "seed \(seed), day \(day)")
        }
    }

    /// Everything is equal and readable in the end. Then everything is deleted, and goes.
    private func end() async throws {
        for device in 0...1 { setOffline(device, false) }
        for _ in 0...2 { for vault in vaults { _ = try await vault.sync() } }
        for vault in vaults {
            #expect(try await vault.unsentCount() == 0, "seed \(seed)")
            for summary in try await vault.items(in: "photos") {
                guard let item = try await vault.item(summary.id) else { continue }
                for attachment in Self.attachments(item.body) {
                    await #expect(throws: Never.self, "seed \(seed), day \(day)") {
                        try await vault.content(of: attachment)
                    }
                }
            }
        }
        for summary in try await vaults[0].items(in: "photos") { try await vaults[0].delete(summary.id) }
        for vault in vaults { _ = try await vault.agreeToDeletions() }
        try await noteNamed()
        for _ in 0..<4 {
            try await advance(by: 40)
            for device in 0...1 { try await sweep(device) }
        }
        #expect(try await vaults[0].chunksOnServer() == [], "seed \(seed)")
        for vault in vaults { #expect(try await vault.attachmentUsage().waitingByteCount == 0, "seed \(seed)") }
    }

    // MARK: Items

    private func put(_ attachments: [SalternClient.Attachment], _ id: ItemID, _ device: Int) async throws {
        if attachments.count == 1, Bool.random(using: &random) {
            return try await put(attachments[0].body(), id, device)
        }
        counts.nested += 1
        let album = Album(pages: [[:]] + attachments.map { ["photo": $0] })
        try await put(SecureBytes(copying: [UInt8](try JSONEncoder().encode(album))), id, device)
    }

    private func put(_ body: SecureBytes, _ id: ItemID, _ device: Int) async throws {
        try await vaults[device].put(PlainItem(body: body), id, in: "photos")
    }

    private func attachments(_ id: ItemID, _ device: Int) async throws -> [SalternClient.Attachment] {
        guard let item = try await vaults[device].item(id) else { return [] }
        return Self.attachments(item.body)
    }

    /// As the app reads them, and not as the sweep does.
    static func attachments(_ body: SecureBytes) -> [SalternClient.Attachment] {
        if let one = SalternClient.Attachment(body) { return [one] }
        let album = try? JSONDecoder().decode(Album.self, from: body.withUnsafeBytes { Data($0) })
        return album?.pages.flatMap(\.values) ?? []
    }

    private func noteNamed() async throws {
        for (device, vault) in vaults.enumerated() {
            for summary in try await vault.items(in: "photos") {
                guard let item = try await vault.item(summary.id) else { continue }
                for chunk in Self.attachments(item.body).flatMap(\.chunks) { namedAt[device][chunk] = day }
            }
        }
    }
}

extension LiveServer {
    /// The server got all of its chunks so many days earlier.
    func makeChunksOlder(days: Int64) async throws {
        try await database.administer(
            """
            UPDATE saltern.items SET updated_at = updated_at - interval '\(days) days'
            WHERE collection = '\(SalternClient.Attachment.chunkCollection)' AND NOT deleted
            """)
    }
}

extension Vault {
    /// The server got all chunks that are known here so many days earlier.
    func makeChunksOlder(days: Int64) throws {
        try store.database.execute("UPDATE chunks SET stored_at = stored_at - ?", .integer(days * 86_400))
    }

    fileprivate func stopSweepsOfSyncs() throws { try store.set(.sweptAt, .max / 2) }

    fileprivate func removeAged(at age: Int64) throws { try store.removeAged(at: age) }

    fileprivate func chunksOnServer() async throws -> Set<ItemID> {
        var ids: Set<ItemID> = []
        var page: String?
        repeat {
            let items = try await api.listItems(
                collection: SalternClient.Attachment.chunkCollection, isMetaOnly: true, page: page, open.token)
            ids.formUnion(items.items.map(\.id))
            page = items.nextPage
        } while page != nil
        return ids
    }

    fileprivate func chunksWaiting() throws -> Set<ItemID> { Set(try store.waitingChunks().map(\.id)) }

    /// The chunks that items, the trash, what is unsent and versions here name.
    fileprivate func everythingNamed() throws -> Set<ItemID> {
        var chunks: Set<ItemID> = []
        let sealer = try engine.sealer
        func add(_ id: ItemID, _ content: ItemContent) throws {
            let item = try sealer.open(content, id).item
            chunks.formUnion(SweepScenario.attachments(item.body).flatMap(\.chunks))
        }
        try store.forEachContent(add)
        try store.forEachReplaced(of: nil) { try add($0.item, $0.content) }
        return chunks
    }
}
