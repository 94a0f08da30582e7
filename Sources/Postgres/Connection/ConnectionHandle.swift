internal import CLibPQ
internal import Glibc

/// Owner of one `PGconn *`: finished when the owner goes.
final class ConnectionHandle {
    /// Valid as long as the handle; never kept elsewhere.
    let pointer: OpaquePointer
    private let notices = Notices()

    /// What the server remarked without being asked.
    private final class Notices {
        var warnings = ServerWarnings()
    }

    /// Starts to connect with these libpq keywords; the caller polls.
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
        // Errors of the server while connecting have no code but the one in their text.
        PQsetErrorVerbosity(pointer, PQERRORS_SQLSTATE)
        // Notices can quote values, and libpq would print them on standard error. The receiver is called by functions
        // of the connection only, which this object outlives.
        let context = Unmanaged.passUnretained(notices).toOpaque()
        PQsetNoticeReceiver(
            pointer,
            { context, result in
                guard let context, let result else { return }
                // These fields are named by the characters V and R (postgres_ext.h).
                guard let severity = PQresultErrorField(result, CInt(UInt8(ascii: "V"))),
                    strcmp(severity, "WARNING") == 0
                else { return }
                let function = PQresultErrorField(result, CInt(UInt8(ascii: "R"))).map { String(cString: $0) }
                Unmanaged<Notices>.fromOpaque(context).takeUnretainedValue().warnings.note(from: function)
            }, context)
    }

    /// What the server has warned of since this was last asked.
    func takeWarnings() -> ServerWarnings {
        defer { notices.warnings = ServerWarnings() }
        return notices.warnings
    }

    deinit { PQfinish(pointer) }
}
