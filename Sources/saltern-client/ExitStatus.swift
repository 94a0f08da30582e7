/// The exit statuses of the process. The numbers are permanent, because scripts use them.
enum ExitStatus {
    /// Success, with notices for the user: conflicts, deletions that wait, changes that the server rejects.
    static let attention: Int32 = 2
    /// An item, a file or a code cannot be read.
    static let unreadable: Int32 = 65
    /// There is no such item, share, session or file.
    static let notFound: Int32 = 66
    /// The server is unreachable, or requires a wait.
    static let unavailable: Int32 = 69
    /// An existing file or account would be overwritten.
    static let exists: Int32 = 73
    /// The store on this device cannot be used, the disk is full, or the output cannot be written.
    static let store: Int32 = 74
    /// Another process uses the account's store.
    static let busy: Int32 = 75
    /// The server cannot be authenticated, or requests something that this client does not support.
    static let untrustworthy: Int32 = 76
    /// The password or code is wrong, or the session has ended.
    static let denied: Int32 = 77
    /// No account is logged in, the server's address, pin or certificate is malformed, or a folder must not be synced.
    static let configuration: Int32 = 78
    /// The process was ended by a signal, without loss.
    static let interrupted: Int32 = 130

    /// The statuses, the most serious one first.
    private static let bySeriousness: [Int32] = [
        untrustworthy, denied, store, busy, configuration, unreadable, notFound, exists, 1, unavailable, interrupted,
        attention,
    ]

    /// Returns true when a command of several parts ends with `status` rather than `other`.
    static func isMoreSerious(_ status: Int32, than other: Int32) -> Bool {
        let ranks = [status, other].map { bySeriousness.firstIndex(of: $0) ?? -1 }
        return ranks[0] < ranks[1]
    }

    static let help = """
        Exit statuses:
          0    success                   74   store or output unusable
          1    rejected or failed        75   store used by another process
          2    success, with notices     76   server not trusted
          64   usage error               77   wrong password or code, or no session
          65   unreadable input          78   not logged in, or folder not to sync
          66   not found                 130  ended by a signal, without loss
          69   server unavailable
          73   would overwrite something
        """
}
