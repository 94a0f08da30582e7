import CommandLineKit
import SalternClient

/// The rate limit of a command, for all of its requests together, in each direction: `--limit-rate RATE`.
enum RateOption {
    static let help =
        "  --limit-rate RATE     maximum bytes per second, from 16K on (K, M, G: 1,024)"

    /// Returns the limit in bytes a second; nil without the option.
    static func limit(_ arguments: inout Arguments) throws(UsageError) -> Int? {
        guard let text = try arguments.option("--limit-rate") else { return nil }
        guard let rate = rate(text), rate >= CurlTransport.lowestRateLimit else {
            throw UsageError(message: "--limit-rate must be a number of bytes a second from 16K, such as 500K or 2M")
        }
        return rate
    }

    private static func rate(_ text: String) -> Int? {
        let shifts: [Character: Int] = ["K": 10, "M": 20, "G": 30]
        let shift = text.last.flatMap { shifts[Character($0.uppercased())] }
        let digits = shift == nil ? Substring(text) : text.dropLast()
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let number = Int(digits) else {
            return nil
        }
        let (rate, isTooMuch) = number.multipliedReportingOverflow(by: 1 << (shift ?? 0))
        return isTooMuch ? nil : rate
    }
}
