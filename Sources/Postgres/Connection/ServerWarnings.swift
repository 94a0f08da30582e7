/// Collects the server's warnings that put a commit in doubt.
///
/// The server's function that warned identifies a warning. Messages are translated, and nearly all warnings have the
/// same code (01000). Their time is no criterion: a trigger can wait for the commit, and a commit can be part of a
/// statement.
struct ServerWarnings: Equatable {
    /// True if a commit did not wait for a standby, or the function is unknown.
    private var isAboutStandby = false
    /// True if another function warned, possibly about other nodes.
    private var isAboutOthers = false

    /// The only function in which PostgreSQL stops waiting for a synchronous standby. The commit itself has succeeded.
    private static let standbyWait = "SyncRepWaitForLSN"
    /// Warnings of triggers, and of transaction numbers running out.
    private static let aboutNoCommit: Set = ["exec_stmt_raise", "GetNewTransactionId", "GetNewMultiXactId"]

    /// - Parameter function: The name of the function that warned, if the server sent it.
    mutating func note(from function: String?) {
        guard let function, function != Self.standbyWait else { return isAboutStandby = true }
        if !Self.aboutNoCommit.contains(function) { isAboutOthers = true }
    }

    /// Returns true if a standby or node may lack a commit.
    /// - Parameter isDistributed: True on a cluster. Citus warns in many places about nodes that did not commit, and
    ///   passes on warnings of other nodes.
    func leaveDoubt(isDistributed: Bool) -> Bool { isAboutStandby || isDistributed && isAboutOthers }
}
