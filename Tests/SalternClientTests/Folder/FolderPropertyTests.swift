import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// No version of a file is ever lost: three folders, random edits, also within a round, offline periods, requests and
/// replies that are lost, repeated or late, rounds that are cut off, devices that start again.
///
/// A scenario is its seed. `SALTERN_FOLDER_SCENARIOS` runs more of them, `SALTERN_FOLDER_SEED` begins at another one.
@Suite struct FolderPropertyTests {
    private static let count = UInt64(ProcessInfo.processInfo.environment["SALTERN_FOLDER_SCENARIOS"] ?? "") ?? 24
    private static let first = UInt64(ProcessInfo.processInfo.environment["SALTERN_FOLDER_SEED"] ?? "") ?? 1

    @Test func `in the end all folders are equal and have every version that a person wrote`() async throws {
        for seed in Self.first..<(Self.first + Self.count) {
            try await LiveServer.with { server in
                do {
                    let scenario = try await FolderScenario(seed, server)
                    try await scenario.run()
                } catch {
                    Issue.record("seed \(seed): \(error)")
                }
            }
        }
    }
}

/// What becomes of one seed.
private final class FolderScenario {
    private let seed: UInt64
    private let devices: [FolderDevice]
    private var random: SeededRandom
    private let written = WrittenFiles()
    private let names = ["a", "b.txt", "a/b", "c/d/e", "c/d", "c/f", "\u{e4}"]

    init(_ seed: UInt64, _ server: LiveServer) async throws {
        self.seed = seed
        random = SeededRandom(state: seed)
        var devices: [FolderDevice] = []
        for name in ["phone", "laptop", "tablet"] {
            devices.append(try await FolderDevice(name, server, isFirst: devices.isEmpty))
        }
        self.devices = devices
    }

    func run() async throws {
        for _ in 0..<Int.random(in: 10...40, using: &random) { try await step() }
        for device in devices { await device.device.link.deliverLate() }
        try await converge()
        check()
    }

    private func step() async throws {
        let device = devices[Int.random(in: 0..<3, using: &random)]
        if chance(2) { return edit(device, Int.random(in: 0..<100, using: &random), random.next()) }
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
            let (kind, state) = (Int.random(in: 0..<100, using: &random), random.next())
            let (written, names) = (written, names)
            link.interrupt(
                LossyTransport.Interruption(exchange: exchange, moment: moment) {
                    written.edit(device, names, kind, state)
                })
        }
        if chance(24) { link.expireCursor() }
        do {
            // In a task of its own, which may be cancelled.
            _ = try await Task { try await device.sync.run() }.value
        } catch let error as FolderError {
            switch error {
            case .cancelled, .vault(.unavailable): break
            default: throw error
            }
        }
        _ = link.endInterruption()
        link.setFate { .passes }
        link.setRewrite { $1 }
    }

    private func edit(_ device: FolderDevice, _ kind: Int, _ state: UInt64) {
        written.edit(device, names, kind, state)
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

    private func converge() async throws {
        for _ in 0..<8 {
            var isQuiet = true
            for device in devices {
                let report = try await device.agreeing.run()
                let count =
                    report.uploaded.count + report.downloaded.count + report.renamed.count + report.conflicts.count
                    + report.deletedHere.count + report.deletedThere.count
                if count > 0 { isQuiet = false }
            }
            if isQuiet { return }
        }
        Issue.record("seed \(seed): it never ends")
    }

    private func check() {
        let files = devices.map { $0.files() }
        #expect(files[0] == files[1] && files[1] == files[2], "seed \(seed)")
        let trash = devices.reduce(into: Set<String>()) { $0.formUnion($1.trash()) }
        let lost = written.leaves.subtracting(files[0].values).subtracting(trash)
        #expect(lost.isEmpty, "seed \(seed): lost \(lost.map { $0.prefix(20) })")
    }

    private func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
}

/// What a person wrote and has not replaced or deleted where they could see it, and how they do it.
private final class WrittenFiles: Sendable {
    private struct State {
        var leaves: Set<String> = []
        var count = 0
        var deleted: [String] = []
    }

    private let state = Mutex(State())

    var leaves: Set<String> { state.withLock { $0.leaves } }

    private func version(over seen: String?, isLong: Bool) -> String {
        state.withLock { state in
            state.count += 1
            let text = "version \(state.count)" + (isLong ? String(repeating: ".", count: 600_000) : "")
            if let seen { state.leaves.remove(seen) }
            state.leaves.insert(text)
            return text
        }
    }

    /// One edit: what cannot be done, because of a folder in the way, is not done.
    func edit(_ device: FolderDevice, _ names: [String], _ kind: Int, _ seed: UInt64) {
        var random = SeededRandom(state: seed)
        let present = device.files().sorted { $0.key < $1.key }
        let name = names.randomElement(using: &random) ?? "a"
        switch kind {
        case 0..<35:
            guard !FileManager.default.fileExists(atPath: device.url(name).path) else { return }
            let text = version(over: nil, isLong: kind == 0)
            do { try device.write(text, to: name) } catch { state.withLock { _ = $0.leaves.remove(text) } }
        case 35..<65:
            guard let (path, seen) = present.randomElement(using: &random) else { return }
            let text = version(over: seen, isLong: kind == 35)
            guard (try? device.write(text, to: path)) != nil else { return }
        case 65..<78:
            guard let (path, seen) = present.randomElement(using: &random), (try? device.remove(path)) != nil else {
                return
            }
            state.withLock { state in
                state.leaves.remove(seen)
                state.deleted.append(seen)
            }
        case 78..<90:
            guard let (path, _) = present.randomElement(using: &random) else { return }
            try? device.rename(path, name)
        default:
            // What was deleted is wanted again.
            guard let text = state.withLock({ $0.deleted.popLast() }),
                !FileManager.default.fileExists(atPath: device.url(name).path),
                (try? device.write(text, to: name)) != nil
            else { return }
            state.withLock { _ = $0.leaves.insert(text) }
        }
    }
}
