internal import HTTPCore
internal import Postgres

/// `POST /v1/kdf`: returns the KDF parameters of a userid. Known and unknown userids take the same work, response time
/// and form of reply.
struct ShowKDFParameters: OpenEndpoint {
    private let database: PostgresClient
    private let decoys: DecoyParameters
    private let saltPrefix: String

    init(_ parts: Dependencies) {
        database = parts.database
        decoys = parts.installation.decoys
        saltPrefix = parts.configuration.saltPrefix
    }

    func respond(to request: Request) async throws -> Response {
        let userid = try JSONBody.read(request) { try $0.required("userid", Userid.init(json:)) }
        let find = FindKDFParameters(userid: userid, slot: decoys.slot(for: userid))
        let row = try await ResponseTiming.lookup.always { try await database.execute(find).first }
        guard let row else { throw InstallationError.missing }
        return .json { writer in
            writer.object { writer in
                writer.member("algorithm", KDFPolicy.algorithm)
                writer.member("saltPrefix", saltPrefix)
                writer.member("salt", saltPrefix + userid.string)
                writer.member("iterations", Int(row.iterations ?? row.decoyIterations))
                writer.member("keyLength", KDFPolicy.keyLength)
            }
        }
    }
}

/// Finds the KDF iterations of a userid and those of its decoy, in one row for known and unknown userids.
struct FindKDFParameters: Statement {
    let userid: Userid
    /// The userid's position among the decoys, from 1.
    let slot: Int32

    struct Row: Sendable {
        let iterations: Int32?
        let decoyIterations: Int32
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT l.kdf_iterations, i.decoy_iterations[\(\.slot)]
        FROM saltern.installation i LEFT JOIN saltern.logins l ON l.userid = \(\.userid.string)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

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
