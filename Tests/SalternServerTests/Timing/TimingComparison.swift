/// Two kinds of requests, measured in pairs in random order, and how well a classifier tells them apart by their times.
///
/// A classifier is made on one half of the pairs and judged on the other. When the kind has no influence on the time,
/// which request of a pair was of which kind is a fair coin, whatever the machine did meanwhile: so the number of right
/// answers is binomial, and noise cannot make the judgement fail.
struct TimingComparison {
    /// Nanoseconds of the first kind and of the second, a pair after the other.
    private(set) var pairs: [(Int64, Int64)] = []

    mutating func append(_ first: Duration, _ second: Duration) {
        pairs.append((Self.nanoseconds(first), Self.nanoseconds(second)))
    }

    /// How much better than by chance a classifier does.
    struct Advantage {
        /// Right answers less half of all answers, in standard deviations of a coin.
        let deviations: Double
        /// The share of right answers.
        let accuracy: Double
    }

    /// The better of two classifiers: one that sees a single time and compares it with a threshold, and one that sees a
    /// pair and says which is which.
    var advantage: Advantage {
        let half = pairs.count / 2
        let (training, trial) = (Array(pairs[..<half]), Array(pairs[half...]))
        let byThreshold = Self.thresholdAdvantage(training, trial)
        let byPair = Self.pairAdvantage(training, trial)
        return byThreshold.deviations > byPair.deviations ? byThreshold : byPair
    }

    /// Which of a pair is the slower one.
    private static func pairAdvantage(_ training: [(Int64, Int64)], _ trial: [(Int64, Int64)]) -> Advantage {
        let isFirstSlower = training.count { $0.0 > $0.1 } * 2 > training.count
        let right = trial.count { isFirstSlower ? $0.0 > $0.1 : $0.0 < $0.1 }
        return advantage(right, of: trial.count)
    }

    /// Whether a time is above a threshold, the best of 200 quantiles, in the better of both directions.
    private static func thresholdAdvantage(_ training: [(Int64, Int64)], _ trial: [(Int64, Int64)]) -> Advantage {
        let times = training.flatMap { [$0.0, $0.1] }.sorted()
        var best = (threshold: Int64(0), isFirstAbove: true, right: -1)
        for quantile in 1..<200 {
            let threshold = times[times.count * quantile / 200]
            let right = training.reduce(0) { $0 + ($1.0 > threshold ? 1 : 0) + ($1.1 > threshold ? 0 : 1) }
            if right > best.right { best = (threshold, true, right) }
            if 2 * training.count - right > best.right { best = (threshold, false, 2 * training.count - right) }
        }
        // A pair on one side of the threshold has one right answer and one wrong: it says nothing.
        let told = trial.filter { ($0.0 > best.threshold) != ($0.1 > best.threshold) }
        return advantage(told.count { ($0.0 > best.threshold) == best.isFirstAbove }, of: told.count)
    }

    private static func advantage(_ right: Int, of count: Int) -> Advantage {
        guard count > 0 else { return Advantage(deviations: 0, accuracy: 0.5) }
        let excess = Double(right) - Double(count) / 2
        return Advantage(deviations: excess / (Double(count).squareRoot() / 2), accuracy: Double(right) / Double(count))
    }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
