internal import CLibPQ
internal import Glibc

/// Owns one `PGconn *` and finishes it in `deinit`.
final class ConnectionHandle {
    /// Valid as long as the handle. It is not stored elsewhere.
    let pointer: OpaquePointer
    private let notices = Notices()

    /// Collects the server's notices.
    private final class Notices {
        var warnings = ServerWarnings()
    }

    /// Starts to connect with these libpq keywords. The caller polls.
    /// - Returns: `nil` when memory is short.
    init?(starting options: [(keyword: String, value: String)]) {
        var keywords: [UnsafePointer<CChar>?] = options.map { UnsafePointer(strdup($0.keyword)) }
        var values: [UnsafePointer<CChar>?] = options.map { UnsafePointer(strdup($0.value)) }
        defer {
            for string in keywords + values { free(UnsafeMutablePointer(mutating: string)) }
        }
        keywords.append(nil)
        values.append(nil)
        guard let pointer = PQconnectStartParams(keywords, values, 0) else { return nil }
        self.pointer = pointer
        // Errors of the server during connection set-up have their code only in their text.
        PQsetErrorVerbosity(pointer, PQERRORS_SQLSTATE)
        // Notices can quote values, and libpq would print them on standard error. Only functions of the connection call
        // the receiver, and this object outlives it.
        let context = Unmanaged.passUnretained(notices).toOpaque()
        PQsetNoticeReceiver(
            pointer,
            { context, result in
                guard let context, let result else { return }
                // The names of these fields are the characters V and R (postgres_ext.h).
                guard let severity = PQresultErrorField(result, CInt(UInt8(ascii: "V"))),
                    strcmp(severity, "WARNING") == 0
                else { return }
                let function = PQresultErrorField(result, CInt(UInt8(ascii: "R"))).map { String(cString: $0) }
                Unmanaged<Notices>.fromOpaque(context).takeUnretainedValue().warnings.note(from: function)
            }, context)
    }

    /// Returns the warnings since the last call.
    func takeWarnings() -> ServerWarnings {
        defer { notices.warnings = ServerWarnings() }
        return notices.warnings
    }

    deinit { PQfinish(pointer) }
}

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
