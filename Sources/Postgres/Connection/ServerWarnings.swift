/// What the server has warned of, as far as it tells whether a commit is in doubt.
///
/// Told by the function of the server that warned. Messages are translated, the code is that of nearly every warning (01000),
/// and when one comes says little: a trigger can wait for the commit, and a commit be part of a statement.
struct ServerWarnings: Equatable {
    /// Nobody waited until a standby had the commit, or it is not told who warned.
    private var isAboutStandby = false
    /// Somebody else warned, who may know of other nodes.
    private var isAboutOthers = false

    /// Where PostgreSQL gives up the wait for a synchronous standby, and there alone; the commit itself has succeeded.
    private static let standbyWait = "SyncRepWaitForLSN"
    /// What a trigger says, and that numbers of transactions run out.
    private static let aboutNoCommit: Set = ["exec_stmt_raise", "GetNewTransactionId", "GetNewMultiXactId"]

    /// - Parameter function: The name of the function that warned, when the server says it.
    mutating func note(from function: String?) {
        guard let function, function != Self.standbyWait else { return isAboutStandby = true }
        if !Self.aboutNoCommit.contains(function) { isAboutOthers = true }
    }

    /// Whether what was committed meanwhile may be missing where it belongs.
    /// - Parameter isDistributed: Whether the server hands on what other nodes do: Citus warns in many places of one that did
    ///   not commit, and so may what other nodes said.
    func leaveDoubt(isDistributed: Bool) -> Bool { isAboutStandby || isDistributed && isAboutOthers }
}
