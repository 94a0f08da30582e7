import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// No version of a file is ever lost: three folders, random edits, also within a round, offline periods, requests and
/// replies that are lost, repeated or late, rounds that are cut off, devices that start again.
///
/// A scenario is its seed: see ``PropertyTests``.
@Suite struct FolderPropertyTests {
    /// At once, each with a server of its own.
    private static let lanes: UInt64 = 3

    @Test(arguments: 0..<lanes)
    func `in the end all folders are equal and have every version that a person wrote`(lane: UInt64) async throws {
        try await LiveServer.with { server in
            for seed in PropertyTests.seeds(ofLane: lane, of: Self.lanes, from: PropertyTests.slow) {
                do {
                    try await FileScenario(seed, server).run()
                } catch {
                    Issue.record("seed \(seed): \(error)")
                }
            }
        }
    }

    @Test func `a version that was replaced elsewhere is not awaited when it is written again`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            let written = WrittenFiles()
            written.edit(phone, ["a"], .create, 1)
            try await phone.sync.run()
            try await laptop.sync.run()
            written.edit(phone, ["a"], .replace, 1)
            try await phone.sync.run()
            written.edit(laptop, ["a"], .delete, 1)
            written.edit(laptop, ["b"], .restore, 1)
            #expect(laptop.files() == ["b": "version 1"])
            #expect(written.leaves == ["version 2"])
            // To the folder it is the file, renamed: one cannot be told from the other.
            try await laptop.sync.run()
            try await phone.sync.run()
            #expect(laptop.files() == ["b": "version 2"])
            #expect(phone.files() == laptop.files())
        }
    }
}

/// What becomes of one seed.
private final class FileScenario {
    private let seed: UInt64
    private let devices: [FolderDevice]
    private var random: SeededGenerator
    private let written = WrittenFiles()
    private let names = ["a", "b.txt", "a/b", "c/d/e", "c/d", "c/f", "\u{e4}"]

    init(_ seed: UInt64, _ server: LiveServer) async throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        var devices: [FolderDevice] = []
        for name in ["phone", "laptop", "tablet"] {
            let userid = "person-\(seed)@example.org"
            devices.append(try await FolderDevice(name, server, userid: userid, isFirst: devices.isEmpty))
        }
        self.devices = devices
    }

    func run() async throws {
        for _ in 0..<Int.random(in: 10...40, using: &random) { try await step() }
        for device in devices { await device.device.link.deliverLate() }
        for device in devices { written.stopIgnoring(device) }
        try await converge()
        check()
    }

    private func step() async throws {
        let device = devices[Int.random(in: 0..<3, using: &random)]
        if chance(2) { return written.edit(device, names, .random(using: &random, hasLong: true), random.next()) }
        let link = device.device.link
        if chance(2) { setBadFate(link) }
        let exchange = Int.random(in: 0..<6, using: &random)
        let moment: LossyTransport.Moment = chance(2) ? .beforeRequest : .beforeReply
        if chance(6) {
            link.interrupt(
                LossyTransport.Interruption(exchange: exchange, moment: moment) {
                    withUnsafeCurrentTask { $0?.cancel() }
                })
        } else if chance(3) {
            let (edit, state) = (FolderEdit.random(using: &random, hasLong: true), random.next())
            let (written, names) = (written, names)
            link.interrupt(
                LossyTransport.Interruption(exchange: exchange, moment: moment) {
                    written.edit(device, names, edit, state)
                })
        }
        if chance(24) { link.expireCursor() }
        do {
            // In a task of its own, which may be cancelled.
            let report = try await Task { try await device.sync.run() }.value
            written.note(device, "synced: \(report.summary)")
        } catch let error as FolderError {
            switch error {
            case .cancelled, .vault(.unavailable): written.note(device, "stopped: \(error)")
            default: throw error
            }
        }
        _ = link.endInterruption()
        link.setFate { .passes }
        link.setRewrite { $1 }
    }

    private func setBadFate(_ link: LossyTransport) {
        let random = Mutex(SeededGenerator(seed: random.next()))
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

    private func converge() async throws {
        for _ in 0..<8 {
            var isQuiet = true
            for device in devices {
                let unsent = try await device.vault.unsentCount()
                let report = try await device.agreeing.run()
                written.note(device, "converges: \(report.summary)")
                if unsent > 0 || report.hasDone { isQuiet = false }
            }
            if isQuiet { return }
        }
        Issue.record("seed \(seed): it never ends")
    }

    private func check() {
        let files = devices.map { $0.files() }
        #expect(files[0] == files[1] && files[1] == files[2], "seed \(seed)")
        let folders = devices.map { $0.folders() }
        #expect(folders[0] == folders[1] && folders[1] == folders[2], "seed \(seed): \(folders)\n\(written.trace)")
        let trash = devices.reduce(into: Set<String>()) { $0.formUnion($1.trash()) }
        let lost = written.leaves.subtracting(files[0].values).subtracting(trash)
        #expect(lost.isEmpty, "seed \(seed): lost \(lost.map { $0.prefix(20) })\n\(written.trace)")
    }

    private func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
}
