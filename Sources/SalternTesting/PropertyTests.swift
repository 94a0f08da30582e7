internal import Foundation

/// The number of seeds of all property tests.
///
/// A property test runs the scenarios of a range of seeds. `SALTERN_TEST_SEEDS` is the length of the range (default
/// 100; `scripts/test --all` sets 1,000). `SALTERN_TEST_FIRST_SEED` is its start, to repeat a failed seed.
public enum PropertyTests {
    /// The number of seeds, at least 1.
    public static let count = number(of: "SALTERN_TEST_SEEDS") ?? 100

    /// The first seed.
    public static let first = number(of: "SALTERN_TEST_FIRST_SEED") ?? 1

    /// The seeds of a test, one scenario each.
    public static let seeds = first..<(first + count)

    /// The seeds of a test that creates a database or a server for each: one in 33, and at least 3.
    public static let databases = first..<(first + max(3, count / 33))

    /// The seeds of a test that needs at least a tenth of a second for each: a tenth, and at least 10.
    public static let slow = first..<(first + max(10, count / 10))

    /// The rounds of a test that starts and kills a process in each: a tenth of the seeds, at least 10.
    public static let processes = Int(max(10, count / 10))

    /// The distance of the tested cases in a long table: 1 with 1,000 seeds, 11 with 100. It is odd, so that tables of
    /// two or four columns are tested in each column.
    public static let stride = Int(max(1, 1_000 / count)) | 1

    /// The duration of writing in a test without seeds: 30 ms a seed.
    public static let duration = Duration.milliseconds(30 * count)

    /// Returns the number of repetitions in a test without seeds: all with 1,000 seeds, and a third with fewer.
    public static func repetitions(_ all: Int) -> Int { isThorough ? all : max(1, all / 3) }

    /// Returns the cases that a test without seeds tries: all with 1,000 seeds, and a third with fewer.
    /// - Parameter shift: Selects the third. The first seed does, too.
    public static func cases<Case>(_ all: [Case], shift: Int = 0) -> [Case] {
        isThorough ? all : all.enumerated().filter { ($0.offset + shift + Int(first)) % 3 == 0 }.map(\.element)
    }

    private static let isThorough = count >= 1_000

    /// Returns the seeds of one of several concurrent groups: consecutive, and together all of them.
    ///
    /// - Parameters:
    ///   - lane: 0 to `lanes` - 1.
    ///   - seeds: The seeds that the groups divide.
    public static func seeds(
        ofLane lane: UInt64, of lanes: UInt64, from seeds: Range<UInt64> = PropertyTests.seeds
    ) -> Range<UInt64> {
        let size = (UInt64(seeds.count) + lanes - 1) / lanes
        let start = min(seeds.lowerBound + lane * size, seeds.upperBound)
        return start..<min(start + size, seeds.upperBound)
    }

    /// Ends the tests for a value that is no positive number. A default would let a misspelt number test less.
    private static func number(of name: String) -> UInt64? {
        guard let text = ProcessInfo.processInfo.environment[name] else { return nil }
        guard let number = UInt64(text), (1...1_000_000_000).contains(number) else {
            preconditionFailure("\(name) must be a number from 1 to 1,000,000,000; it is '\(text)'")
        }
        return number
    }
}

/// Pseudo-random numbers that repeat for the same seed (SplitMix64, Steele, Lea and Flood 2014).
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// Returns true with the probability, from 0 to 1.
    public mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &self) < probability }

    /// Returns true once in `count` times on average.
    public mutating func chance(oneIn count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }
}
