import Testing

@testable import Postgres

@Suite struct ServerWarningsTests {
    private func leavesDoubt(_ functions: [String?], isDistributed: Bool = false) -> Bool {
        var warnings = ServerWarnings()
        for function in functions { warnings.note(from: function) }
        return warnings.leaveDoubt(isDistributed: isDistributed)
    }

    @Test func `a standby that was not awaited leaves doubt, whatever else was said`() {
        #expect(leavesDoubt(["SyncRepWaitForLSN"]))
        #expect(leavesDoubt(["exec_stmt_raise", "SyncRepWaitForLSN", "pg_signal_backend"]))
        #expect(leavesDoubt([nil]))
        #expect(leavesDoubt(["SyncRepWaitForLSN"], isDistributed: true))
    }

    @Test func `what others warn of leaves none, but on a cluster`() {
        #expect(!leavesDoubt([]))
        #expect(!leavesDoubt(["pg_signal_backend"]))
        #expect(leavesDoubt(["FinishRemoteTransactionCommit"], isDistributed: true))
        #expect(leavesDoubt(["DefaultCitusNoticeReceiver", "exec_stmt_raise"], isDistributed: true))
    }

    @Test func `triggers, and numbers that run out, leave none anywhere`() {
        for function in ["exec_stmt_raise", "GetNewTransactionId", "GetNewMultiXactId"] {
            #expect(!leavesDoubt([function]))
            #expect(!leavesDoubt([function], isDistributed: true))
        }
    }
}
