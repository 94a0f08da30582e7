import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What is decided, on three devices without disks: random edits, devices that are stopped between any two steps, names
/// that meet.
@Suite struct FolderModelTests {
    @Test func `in the end all folders are equal and have every version that a person wrote`() throws {
        for seed in PropertyTests.seeds { try run(seed) }
    }

    private func run(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let vault = ModelVault()
        var devices = ["phone", "laptop", "tablet"].map(ModelDevice.init)
        // File against folder, and few names, so that they meet.
        let names = try ["a", "b", "a/b", "a/c", "b/a/d", "e.txt"].map { try FolderPath($0) }
        var leaves: Set<[UInt8]> = []
        var written = 0
        func write(over seen: FileContent?) -> FileContent {
            written += 1
            if let seen { leaves.remove(seen.digest) }
            let digest = Array("version \(written)".utf8)
            leaves.insert(digest)
            return FileContent(digest: digest, byteCount: 9, isExecutable: Bool.random(using: &random))
        }
        for _ in 0..<Int.random(in: 5...40, using: &random) {
            let index = Int.random(in: 0..<3, using: &random)
            let present = devices[index].files.keys.sorted()
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2:
                guard let path = names.randomElement(using: &random), devices[index].files[path] == nil,
                    devices[index].isRoom(path)
                else { continue }
                devices[index].files[path] = write(over: nil)
            case 3:
                guard let path = present.randomElement(using: &random) else { continue }
                devices[index].files[path] = write(over: devices[index].files[path])
            case 4:
                guard let path = present.randomElement(using: &random) else { continue }
                devices[index].files[path]?.isExecutable.toggle()
            case 5:
                guard let path = present.randomElement(using: &random),
                    let content = devices[index].files.removeValue(forKey: path)
                else { continue }
                leaves.remove(content.digest)
            case 6:
                guard let from = present.randomElement(using: &random), let to = names.randomElement(using: &random),
                    devices[index].files[to] == nil, let content = devices[index].files.removeValue(forKey: from)
                else { continue }
                if devices[index].isRoom(to) {
                    devices[index].files[to] = content
                } else {
                    devices[index].files[from] = content
                }
            default:
                let limit = Bool.random(using: &random) ? Int.max : Int.random(in: 0..<4, using: &random)
                _ = devices[index].settle(vault, limit: limit)
            }
        }
        for _ in 0..<4 {
            for index in 0..<3 {
                let hasEnded = devices[index].settle(vault)
                #expect(hasEnded, "seed \(seed): \(devices[index].name)")
            }
        }
        let there = Dictionary(vault.remote.values.map { ($0.path, $0.content) }) { first, _ in first }
        #expect(there.count == vault.remote.count, "seed \(seed)")
        for device in devices { #expect(device.files == there, "seed \(seed): \(device.name)") }
        let lost = leaves.subtracting(there.values.map(\.digest))
        #expect(lost.isEmpty, "seed \(seed): lost \(lost.map { String(decoding: $0, as: UTF8.self) })")
    }
}
