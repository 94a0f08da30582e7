internal import HTTPCore

/// Which iteration counts the server asks for.
public struct KDFPolicy: Sendable, Equatable {
    /// What clients take for a new account.
    public var defaultIterations: Int
    /// The least that new parameters may have; never applied to a login.
    public var minimumIterations: Int

    public init(defaultIterations: Int = 600_000, minimumIterations: Int = 600_000) {
        self.defaultIterations = defaultIterations
        self.minimumIterations = minimumIterations
    }

    /// No configuration goes below.
    public static let absoluteMinimum = 10_000
    /// No client goes above: a slip must not lock a person out for an hour a login.
    public static let maximum = 10_000_000
    /// The one algorithm.
    static let algorithm = "PBKDF2-HMAC-SHA256"
    /// Bytes of a password key.
    static let keyLength = PasswordKey.byteCount

    /// Reads the iterations of new parameters.
    func newIterations(json: JSONValue) throws(Problem) -> Int32 {
        Int32(try json.integer(in: minimumIterations...Self.maximum))
    }

    /// Whether an account should raise its iterations.
    func isOutdated(_ iterations: Int32) -> Bool { iterations < minimumIterations }

    /// What is wrong with the policy, a sentence each.
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
