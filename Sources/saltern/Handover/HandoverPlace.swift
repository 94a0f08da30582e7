import Foundation

/// The path at which a server offers its sockets.
///
/// It is taken in two steps. Steps that can fail use another name. Then one call replaces any server's socket at the
/// path.
struct HandoverPlace {
    let path: String
    private let preparation: String
    private let identity: Identity
    private(set) var isTaken = false

    /// Distinguishes a file from a later one with the same name.
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
    /// - Throws: ``HandoverFailure``, also when the path or the name beside it is a file but not a socket.
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

    /// - Throws: ``HandoverFailure`` when the path or the name beside it is a file but not a socket.
    static func requireRoom(at path: String) throws {
        for name in [path, preparation(of: path)] { try UnixSocket.requireReplaceable(name) }
    }

    private static func preparation(of path: String) -> String { path + ".next" }

    /// Moves to the path in one step, so that the path always leads to a server.
    mutating func take() throws {
        // Another server may have started meanwhile, removed the file, and created its own.
        guard Identity(of: preparation) == identity else { throw HandoverFailure("\(preparation) was removed") }
        guard rename(preparation, path) == 0 else { throw HandoverFailure("rename", path) }
        isTaken = true
    }

    /// Removes this server's own files.
    func leave() {
        for name in [path, preparation] where Identity(of: name) == identity { unlink(name) }
    }
}
