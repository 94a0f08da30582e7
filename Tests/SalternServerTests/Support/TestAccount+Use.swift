import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

extension TestAccount {
    /// Waits until the use of the account's first session is recorded: nobody waits for that, but it is there within a
    /// second or so.
    func useIsRecorded(in app: TestApplication) async throws {
        let now = UTCTimestamp(microsecondsSinceEpoch: app.clock.now.unixMicroseconds).description.prefix(19)
        // Some minutes at most, which only what hangs takes.
        for _ in 0..<3_600 {
            if try await client.get("/v1/sessions").string("sessions.0.lastUsedAt")?.hasPrefix(now) == true { return }
            try await Task.sleep(for: .milliseconds(50))
        }
        Issue.record("the use of a session was not recorded")
    }
}
