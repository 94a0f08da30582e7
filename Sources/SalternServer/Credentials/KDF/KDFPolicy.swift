internal import HTTPCore

/// The accepted iteration counts.
public struct KDFPolicy: Sendable, Equatable {
    /// Iterations of new accounts.
    public var defaultIterations: Int
    /// Minimum iterations of new parameters. It does not apply to log-ins.
    public var minimumIterations: Int

    public init(defaultIterations: Int = 600_000, minimumIterations: Int = 600_000) {
        self.defaultIterations = defaultIterations
        self.minimumIterations = minimumIterations
    }

    /// The lower limit of all configurations.
    public static let absoluteMinimum = 10_000
    /// The upper limit for clients: a mistake must not make each log-in last an hour.
    public static let maximum = 10_000_000
    /// The only algorithm.
    static let algorithm = "PBKDF2-HMAC-SHA256"
    /// Length of a password key in bytes.
    static let keyLength = PasswordKey.byteCount

    /// Reads the iterations of new parameters.
    func newIterations(json: JSONValue) throws(Problem) -> Int32 {
        Int32(try json.integer(in: minimumIterations...Self.maximum))
    }

    /// Returns true if an account should raise its iterations.
    func isOutdated(_ iterations: Int32) -> Bool { iterations < minimumIterations }

    /// The errors in the policy, one sentence each.
    var findings: [String] {
        var findings: [String] = []
        if minimumIterations < Self.absoluteMinimum || minimumIterations > Self.maximum {
            findings.append("The minimum of KDF iterations must be from \(Self.absoluteMinimum) to \(Self.maximum).")
        }
        if defaultIterations < minimumIterations || defaultIterations > Self.maximum {
            findings.append("The default of KDF iterations must be from the minimum to \(Self.maximum).")
        }
        return findings
    }
}
