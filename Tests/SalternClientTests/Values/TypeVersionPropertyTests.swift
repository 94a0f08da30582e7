import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Three versions of an app's type, on three devices that are mostly offline, with requests and replies that are lost and
/// processes that are killed at any call that writes: nothing that one version has written is lost, unless a version that
/// knows it has removed it.
///
/// A scenario is its seed: see ``PropertyTests``.
@Suite struct TypeVersionPropertyTests {
    /// Scenarios that use one account, one after another.
    private static let share: UInt64 = 10
    private static let lanes: UInt64 = 2

    @Test(arguments: 0..<lanes)
    func `what any version has written is there in the end, on each device`(lane: UInt64) async throws {
        let seeds = PropertyTests.seeds(ofLane: lane, of: Self.lanes)
        print("seeds \(seeds)")
        var incidents = VersionScenario.Incidents()
        for start in stride(from: seeds.lowerBound, to: seeds.upperBound, by: Int(Self.share)) {
            let devices = try await VersionScenario.devices(areMerging: (start - seeds.lowerBound) / Self.share % 3 > 0)
            for seed in start..<min(start + Self.share, seeds.upperBound) {
                let scenario = VersionScenario(seed, devices)
                do { try await scenario.run() } catch {
                    Issue.record("seed \(seed): \(error)")
                    break
                }
                incidents.add(scenario.incidents)
            }
        }
        print("seeds \(seeds): \(incidents)")
        #expect(seeds.count < 50 || incidents.hasEverything)
    }
}

/// One type in three versions. Every dictionary has marks as its keys.
enum MarkedVersions {
    typealias Marks = [String: Int]

    struct Label: Codable, Sendable { var id: Int; var names: Marks }
    struct ColouredLabel: Codable, Sendable { var id: Int; var names: Marks; var hues: Marks? }
    struct Place: Codable, Sendable { var towns: Marks }
    struct PlaceWithStreets: Codable, Sendable { var towns: Marks; var streets: Marks? }

    struct First: Codable, Sendable {
        var words: Marks
        var labels: [Label]
    }

    struct Second: Codable, Sendable {
        var words: Marks
        var labels: [Label]
        var pins: Marks?
        var place: Place?
    }

    struct Third: Codable, Sendable {
        var words: Marks
        var labels: [ColouredLabel]
        var pins: Marks?
        var place: PlaceWithStreets?
        var scores: Marks?

        init(_ second: Second) {
            words = second.words
            labels = second.labels.map { ColouredLabel(id: $0.id, names: $0.names) }
            pins = second.pins
            place = second.place.map { PlaceWithStreets(towns: $0.towns) }
        }
    }

    static let third = ItemSchema<Third>(2, from: ItemSchema<Second>()) { Third($0) }

    static func union(_ one: Marks?, _ other: Marks?) -> Marks? {
        guard let one, let other else { return one ?? other }
        return one.merging(other) { $1 }
    }
}

extension MarkedVersions.First {
    func merged(_ other: Self) -> Self {
        var merged = self
        merged.words.merge(other.words) { $1 }
        for index in labels.indices { merged.labels[index].names.merge(other.labels[index].names) { $1 } }
        return merged
    }
}

extension MarkedVersions.Second {
    func merged(_ other: Self) -> Self {
        var merged = self
        merged.words.merge(other.words) { $1 }
        for index in labels.indices { merged.labels[index].names.merge(other.labels[index].names) { $1 } }
        merged.pins = MarkedVersions.union(pins, other.pins)
        let towns = MarkedVersions.union(place?.towns, other.place?.towns)
        merged.place = towns.map { MarkedVersions.Place(towns: $0) }
        return merged
    }
}

extension MarkedVersions.Third {
    func merged(_ other: Self) -> Self {
        var merged = self
        merged.words.merge(other.words) { $1 }
        for index in labels.indices {
            merged.labels[index].names.merge(other.labels[index].names) { $1 }
            merged.labels[index].hues = MarkedVersions.union(labels[index].hues, other.labels[index].hues)
        }
        merged.pins = MarkedVersions.union(pins, other.pins)
        merged.scores = MarkedVersions.union(scores, other.scores)
        merged.place = place ?? other.place
        merged.place?.towns = MarkedVersions.union(place?.towns, other.place?.towns) ?? [:]
        merged.place?.streets = MarkedVersions.union(place?.streets, other.place?.streets)
        return merged
    }
}
