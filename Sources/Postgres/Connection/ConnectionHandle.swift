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
