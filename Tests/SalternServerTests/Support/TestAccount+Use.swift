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
        try await eventually(every: .milliseconds(50)) {
            try await client.get("/v1/sessions").string("sessions.0.lastUsedAt")?.hasPrefix(now) == true
        }
    }
}
