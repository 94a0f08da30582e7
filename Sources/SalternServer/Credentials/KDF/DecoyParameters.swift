internal import Cryptography
public import Postgres

/// The KDF parameters of unknown userids: stable for each userid, with the distribution of real accounts.
///
/// The database holds 256 quantiles of the real iteration counts. HMAC-SHA256 of the userid under the database's secret
/// selects one, equally on all nodes.
public struct DecoyParameters: Sendable {
    private let key: HMACSHA256.Key

    /// The number of quantiles: one for each value of the code's first byte.
    static let slotCount = 256
    /// The minimum interval between two draws of the quantiles.
    static let redrawInterval = Duration.seconds(86_400)

    init(secret: DecoySecret) {
        key = HMACSHA256.Key(secret.bytes)
    }

    /// Returns the position of a userid's decoy, 1 to 256 as in SQL.
    func slot(for userid: Userid) -> Int32 {
        let code = key.authenticationCode(for: userid.string.utf8)
        return 1 + Int32(code.withUnsafeBytes { $0[0] })
    }

    /// A sufficient sample of accounts: a share is off by one or two percent.
    static let sampleSize: Int64 = 50_000
    /// The successive parts of accounts, in percent, that are sampled until the sample suffices. At most about four
    /// times the sample size is read, for any number of accounts.
    private static let percents = [0.01, 0.04, 0.16, 0.64, 2.56, 10.24, 40.96, 100]

    /// Draws the quantiles again if the last draw is a day old. Servers call it at the start and hourly; several nodes
    /// may do so at once.
    ///
    /// - Returns: True if they were drawn.
    @discardableResult
    public static func redraw(
        database: PostgresClient, clock: any WallClock
    ) async throws(PostgresError) -> Bool {
        let now = clock.now
        let drawnBefore = now - redrawInterval
        guard try await !database.execute(AreDecoysDue(drawnBefore: drawnBefore)).isEmpty else { return false }
        guard let quantiles = try await sample(database)?.quantiles else { return false }
        let replace = ReplaceDecoys(iterations: quantiles, now: now, drawnBefore: drawnBefore)
        return try await !database.execute(replace).isEmpty
    }

    /// Samples sufficient accounts, or all of them.
    static func sample(_ database: PostgresClient) async throws(PostgresError) -> SampleIterations.Row? {
        // On a dedicated connection, so that no request waits for it.
        do {
            return try await database.withTransaction { transaction in
                var sample: SampleIterations.Row?
                for percent in percents where (sample?.count ?? 0) < sampleSize {
                    sample = try await transaction.execute(SampleIterations(percent: percent)).first
                }
                return sample
            }
        } catch let error as PostgresError {
            throw error
        } catch {
            throw .cancelled
        }
    }
}

/// Checks if the decoys are due for a new draw. A separate statement, because the draw reads many rows.
struct AreDecoysDue: Statement {
    typealias Row = Bool

    let drawnBefore: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT true FROM saltern.installation i WHERE i.singleton AND i.decoys_drawn_at <= \(\.drawnBefore)"
}

/// Samples the quantiles of the accounts' present iteration counts. It reads only a part of the table's pages; a
/// cluster takes that part of each shard.
///
/// The k-th of 256 is the quantile at (k - 1/2)/256. A count of a share p of the accounts fills about 256·p slots.
struct SampleIterations: Statement {
    struct Row: Sendable {
        /// The number of sampled accounts.
        let count: Int64
        /// Nil for an empty sample.
        let quantiles: [Int32]?
    }

    /// The part of the pages, 100 for all.
    let percent: Double

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*), percentile_disc(ARRAY[\(middles)]::double precision[]) WITHIN GROUP (ORDER BY kdf_iterations)
        FROM saltern.logins TABLESAMPLE SYSTEM (\(\.percent)::double precision)
        """

    /// The middle of each slot, as literals: a cluster gathers the rows to sort and accepts only constants.
    private static let middles = (0..<DecoyParameters.slotCount)
        .map { "\(2 * $0 + 1) / \(2 * DecoyParameters.slotCount).0" as SQLFragment }.joined(separator: ", ")

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Replaces the decoys. Returns a row if it did, and none if another node was faster.
struct ReplaceDecoys: Statement {
    typealias Row = Bool

    let iterations: [Int32]
    let now: Timestamp
    let drawnBefore: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.installation i SET decoy_iterations = \(\.iterations), decoys_drawn_at = \(\.now)
        WHERE i.singleton AND i.decoys_drawn_at <= \(\.drawnBefore)
        RETURNING true
        """
}

/// The secret that maps userids to decoys.
struct DecoySecret: Sendable {
    let bytes: SecureBytes

    static func random() -> DecoySecret { DecoySecret(bytes: SecureRandom.secureBytes(32)) }
}

extension DecoySecret: PostgresValue {
    static var postgresType: PostgresType { .bytea }

    func encode(to writer: inout ByteWriter) { bytes.withUnsafeBytes { writer.write($0) } }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> DecoySecret? {
        bytes.map { DecoySecret(bytes: SecureBytes(copying: $0)) }
    }
}
