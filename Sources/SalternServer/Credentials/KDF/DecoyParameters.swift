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

    /// Draws the quantiles anew when the last drawing is a day old. Called at start and every hour; nodes may do so
    /// at once.
    /// - Returns: Whether they were drawn.
    @discardableResult
    public static func redraw(
        database: PostgresClient, clock: any WallClock
    ) async throws(PostgresError) -> Bool {
        let now = clock.now
        let redraw = RedrawDecoys(now: now, drawnBefore: now - redrawInterval)
        // It goes through all userids: on a connection of its own, so that nobody waits for it.
        do {
            return try await database.withTransaction { try await !$0.execute(redraw).isEmpty }
        } catch let error as PostgresError {
            throw error
        } catch {
            throw .cancelled
        }
    }
}
