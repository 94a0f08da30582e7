/// What the process ends with. These numbers are for ever: scripts decide by them.
enum ExitStatus {
    /// Done, and a person should look: conflicts, deletions that wait, changes that the server does not take.
    static let attention: Int32 = 2
    /// Something cannot be read: an item, a file, a code.
    static let unreadable: Int32 = 65
    /// There is no such item, share, session or file.
    static let notFound: Int32 = 66
    /// The server is away, or asks to be left alone for a while.
    static let unavailable: Int32 = 69
    /// Something would be written over.
    static let exists: Int32 = 73
    /// The store on this device cannot be used, the disk is full, or the output cannot be written.
    static let store: Int32 = 74
    /// Another process uses the account's store.
    static let busy: Int32 = 75
    /// The server is not who it should be, or asks for what this client does not do.
    static let untrustworthy: Int32 = 76
    /// Wrong password or code, or the session has ended.
    static let denied: Int32 = 77
    /// Nobody is logged in here, the server's address, pin or certificate is malformed, or a folder is not to be synced.
    static let configuration: Int32 = 78
    /// Ended by a signal; nothing was lost.
    static let interrupted: Int32 = 130

    /// From the most serious one on.
    private static let bySeriousness: [Int32] = [
        untrustworthy, denied, store, busy, configuration, unreadable, notFound, exists, 1, unavailable, interrupted,
        attention,
    ]

    /// Returns which of two statuses a command of several parts ends with.
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
