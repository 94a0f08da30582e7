internal import CLibPQ
internal import Glibc

/// Owner of one `PGconn *`: finished when the owner goes.
final class ConnectionHandle {
    /// Valid as long as the handle; never kept elsewhere.
    let pointer: OpaquePointer

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
        // Notices can quote values, and libpq would print them on standard error.
        PQsetNoticeReceiver(pointer, { _, _ in }, nil)
    }

    deinit { PQfinish(pointer) }
}
