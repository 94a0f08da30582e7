internal import Cryptography
public import Postgres

/// The KDF parameters that an unknown userid is shown: stable for the userid, and distributed like those of real
/// accounts.
///
/// The database holds 256 quantiles of the real iteration counts; HMAC-SHA256 of the userid under a secret of the
/// database picks one. Every node reads the same.
public struct DecoyParameters: Sendable {
    private let key: HMACSHA256.Key

    /// How many quantiles there are: one for each value of the first byte of the code.
    static let slotCount = 256
    /// The quantiles are drawn anew at most once in this time.
    static let redrawInterval = Duration.seconds(86_400)

    init(secret: DecoySecret) {
        key = HMACSHA256.Key(secret.bytes)
    }

    /// The position of a userid's decoy, 1 to 256 as SQL counts.
    func slot(for userid: Userid) -> Int32 {
        let code = key.authenticationCode(for: userid.string.utf8)
        return 1 + Int32(code.withUnsafeBytes { $0[0] })
    }

    /// A sample of so many accounts is enough: a share of them is off by a percent or two.
    static let sampleSize: Int64 = 50_000
    /// What part of the accounts is asked about, one after the other until it is enough: so some four times as many as that
    /// are read at most, however many there are.
    private static let percents = [0.01, 0.04, 0.16, 0.64, 2.56, 10.24, 40.96, 100]

    /// Draws the quantiles anew when the last drawing is a day old. Called at start and every hour; nodes may do so
    /// at once.
    /// - Returns: Whether they were drawn.
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

    /// Enough of the accounts, or all of them.
    static func sample(_ database: PostgresClient) async throws(PostgresError) -> SampleIterations.Row? {
        // On a connection of its own, so that nobody waits for it.
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
