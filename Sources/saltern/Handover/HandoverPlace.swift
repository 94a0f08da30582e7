import Foundation

/// The name in the file system under which a server offers its sockets. It is taken in two steps: what can fail is done
/// under another name, and then one call puts it in the place of whatever server's socket is there.
struct HandoverPlace {
    let path: String
    private let preparation: String
    private let identity: Identity
    private(set) var isTaken = false

    /// What tells a file from another one that has its name later.
    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t

        init?(of path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else { return nil }
            device = status.st_dev
            inode = status.st_ino
        }
    }

    /// Binds `socket` beside `path`, and listens.
    /// - Throws: ``HandoverFailure``, also when there is a file at the path, or beside it, that is no socket.
    init(at path: String, binding socket: CInt) throws {
        self.path = path
        let name = Self.preparation(of: path)
        preparation = name
        try Self.requireRoom(at: path)
        unlink(name)
        guard UnixSocket.withAddress(name, { bind(socket, $0, $1) }) == 0 else { throw HandoverFailure("bind", name) }
        guard let identity = Identity(of: name), chmod(name, 0o600) == 0, listen(socket, 8) == 0 else {
            let code = errno
            unlink(name)
            throw HandoverFailure("listen", name, code)
        }
        self.identity = identity
    }

    /// - Throws: ``HandoverFailure`` when there is a file at the path, or beside it, that is no socket.
    static func requireRoom(at path: String) throws {
        for name in [path, preparation(of: path)] { try UnixSocket.requireReplaceable(name) }
    }

    private static func preparation(of path: String) -> String { path + ".next" }

    /// Moves to the path, in one step, so that there is always somebody at it.
    mutating func take() throws {
        // Another server that began meanwhile has removed it, and may have its own there.
        guard Identity(of: preparation) == identity else { throw HandoverFailure("\(preparation) was removed") }
        guard rename(preparation, path) == 0 else { throw HandoverFailure("rename", path) }
        isTaken = true
    }

    /// Removes what is still this server's own.
    func leave() {
        for name in [path, preparation] where Identity(of: name) == identity { unlink(name) }
    }
}
