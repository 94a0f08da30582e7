import SalternTesting
import Testing

@testable import SalternClient

/// Three people with four devices. Requests and replies are lost, processes end, the server lies, and its database is
/// restored. In the end all present members agree, and every version that a person wrote is kept.
@Suite struct SharedVaultPropertyTests {
    @Test func `members agree in the end, and nothing that was written is lost`() async throws {
        var reached = ReachedStates()
        let seeds = PropertyTests.slow
        // Further ones while a state is missing.
        for seed in seeds.lowerBound..<seeds.upperBound + 40 where seeds.contains(seed) || !reached.hasEverything {
            do {
                let scenario = try await SharedVaultScenario(seed: seed)
                for _ in 0..<50 { try await scenario.step() }
                try await scenario.calm()
                try await scenario.check()
                reached.add(scenario.reached)
            } catch {
                Issue.record("seed \(seed): \(error)")
            }
        }
        #expect(reached.hasEverything, "\(reached)")
    }
}

/// The numbers of times that runs have reached states of interest. A run without them would prove nothing.
struct ReachedStates: CustomStringConvertible {
    enum State: String, CaseIterable {
        case joins, returns, removals, lowerings, leaves, rotations, seals, restores, claims, ends
        case endsOfStores, refusedForHead, conflicts, deletions, unsentAcrossRotation, readersAtTheEnd
        case garbageBoxes, garbagePreviousKeys, earlierHeads, forgedByReader, forgedAfterRemoval, cutPages, omissions
    }

    private var counts: [State: Int] = [:]

    subscript(_ state: State) -> Int { counts[state] ?? 0 }

    var hasEverything: Bool { State.allCases.allSatisfy { self[$0] > 0 } }

    mutating func note(_ state: State, _ count: Int = 1) { if count > 0 { counts[state, default: 0] += count } }

    mutating func add(_ other: Self) { counts.merge(other.counts, uniquingKeysWith: +) }

    var description: String {
        State.allCases.map { "\($0) \(self[$0])" }.joined(separator: ", ")
    }
}
