import SalternTesting
import Testing

@testable import SalternClient

/// No version of a file is ever lost: three devices with all of the kit but the disk, random edits, also within a round,
/// processes that end at any step that changes something, requests and replies that are lost, repeated or late, disks
/// that do not tell "a" from "A".
///
/// A scenario is its seed: see ``PropertyTests``.
@Suite struct FolderScenarioTests {
    /// Scenarios that use one account, one after another.
    private static let share: UInt64 = 10
    /// At once.
    private static let lanes: UInt64 = 2

    @Test(arguments: 0..<lanes)
    func `in the end all folders are equal and have every version that a person wrote`(lane: UInt64) async throws {
        let seeds = PropertyTests.seeds(ofLane: lane, of: Self.lanes)
        print("scenarios of folders: seeds \(seeds)")
        for start in stride(from: seeds.lowerBound, to: seeds.upperBound, by: Int(Self.share)) {
            let person = try await MemoryPerson(start)
            for seed in start..<min(start + Self.share, seeds.upperBound) {
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
