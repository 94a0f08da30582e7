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
