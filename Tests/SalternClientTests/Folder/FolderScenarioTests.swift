import Foundation
import Testing

@testable import SalternClient

/// No version of a file is ever lost: three devices with all of the kit but the disk, random edits, also within a round,
/// processes that end at any step that changes something, requests and replies that are lost, repeated or late, disks
/// that do not tell "a" from "A".
///
/// A scenario is its seed. `SALTERN_FOLDER_SCENARIOS` runs more of them, `SALTERN_FOLDER_SEED` begins at another one.
@Suite struct FolderScenarioTests {
    private static let count = UInt64(ProcessInfo.processInfo.environment["SALTERN_FOLDER_SCENARIOS"] ?? "") ?? 1_000
    private static let first = UInt64(ProcessInfo.processInfo.environment["SALTERN_FOLDER_SEED"] ?? "") ?? 1
    /// Scenarios that use one account, one after another.
    private static let share: UInt64 = 10
    /// At once.
    private static let lanes: UInt64 = 2

    @Test(arguments: 0..<lanes)
    func `in the end all folders are equal and have every version that a person wrote`(lane: UInt64) async throws {
        let size = (Self.count + Self.lanes - 1) / Self.lanes
        let first = Self.first + lane * size
        let end = min(first + size, Self.first + Self.count)
        print("scenarios of folders: seeds \(first) to \(end - 1)")
        for start in stride(from: first, to: end, by: Int(Self.share)) {
            let person = try await MemoryPerson(start)
            for seed in start..<min(start + Self.share, end) {
                do {
                    try await FolderScenario(seed, person).run()
                } catch {
                    Issue.record("seed \(seed): \(error)")
                    // Where it stopped its devices are of no use to the next one.
                    break
                }
            }
        }
    }
}
