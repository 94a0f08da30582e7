internal import Foundation

/// How much every property test tries: one number for all of them.
///
/// A property test runs the scenarios of a range of seeds. `SALTERN_TEST_SEEDS` is the length of the range (100 when it is not
/// set; `scripts/test --all` sets 1,000), and `SALTERN_TEST_FIRST_SEED` is where it begins, to repeat one seed that has failed.
public enum PropertyTests {
    /// The number of seeds, at least 1.
    public static let count = number(of: "SALTERN_TEST_SEEDS") ?? 100

    /// The first seed.
    public static let first = number(of: "SALTERN_TEST_FIRST_SEED") ?? 1

    /// The seeds that a test runs, each of them one scenario.
    public static let seeds = first..<(first + count)

    /// The seeds of a test that makes a database or a server for each: one in 33, and at least 3.
    public static let databases = first..<(first + max(3, count / 33))

    /// The seeds of a test that takes a tenth of a second or more for each: a tenth, and at least 24.
    public static let slow = first..<(first + max(24, count / 10))

    /// The rounds of a test that starts and kills a process in each: a tenth of the seeds, and enough for each kind of end.
    public static let processes = Int(max(10, count / 10))

    /// The distance of the cases that are run of a long table: 1 with 1,000 seeds, 11 with 100. It is odd, so that tables of two
    /// or four columns are met in each column.
    public static let stride = Int(max(1, 1_000 / count)) | 1

    /// The time that a test writes for when its load has no seeds: 30 ms a seed.
    public static let duration = Duration.milliseconds(30 * count)

    /// Returns the seeds of one of several lanes that run at once: consecutive, and together all of them.
    ///
    /// - Parameters:
    ///   - lane: 0 to `lanes` - 1.
    ///   - seeds: What the lanes divide among them.
    public static func seeds(
        ofLane lane: UInt64, of lanes: UInt64, from seeds: Range<UInt64> = PropertyTests.seeds
    ) -> Range<UInt64> {
        let size = (UInt64(seeds.count) + lanes - 1) / lanes
        let start = min(seeds.lowerBound + lane * size, seeds.upperBound)
        return start..<min(start + size, seeds.upperBound)
    }

    /// A value that is no positive number ends the tests: with a default in its place a misspelt number would test less.
    private static func number(of name: String) -> UInt64? {
        guard let text = ProcessInfo.processInfo.environment[name] else { return nil }
        guard let number = UInt64(text), (1...1_000_000_000).contains(number) else {
            preconditionFailure("\(name) must be a number from 1 to 1,000,000,000; it is '\(text)'")
        }
        return number
    }
}
