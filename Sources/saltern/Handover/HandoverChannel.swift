import CUnixSocket
import EventLoop
import Foundation
import HTTPServer

/// What two servers say to each other when one takes over from the other, over a Unix socket.
///
/// The old one sends one line, `saltern 1 api=2 metrics=1`, with as many descriptors; the new one serves, and answers
/// `serving`. Until then the old one goes on, whatever becomes of the new one.
struct HandoverMessage: Equatable {
    /// How many sockets there are for the API, and for metrics.
    var apiCount: Int
    var metricsCount: Int

    static let confirmation = "serving\n"
    static let descriptorLimit = Int(SALTERN_DESCRIPTOR_LIMIT)

    init(apiCount: Int, metricsCount: Int) {
        self.apiCount = apiCount
        self.metricsCount = metricsCount
    }

    var text: String { "saltern 1 api=\(apiCount) metrics=\(metricsCount)\n" }

    init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 4, words[0] == "saltern", words[1] == "1", text.hasSuffix("\n"),
            let api = Self.number(words[2], "api="), let metrics = Self.number(words[3].dropLast(), "metrics=")
        else { return nil }
        self.init(apiCount: api, metricsCount: metrics)
    }

    private static func number(_ word: Substring, _ name: String) -> Int? {
        guard word.hasPrefix(name), let number = Int(word.dropFirst(name.count)) else { return nil }
        return (0...descriptorLimit).contains(number) ? number : nil
    }
}

/// Why a server cannot take over, or be taken over from.
struct HandoverFailure: Error, CustomStringConvertible {
    let description: String

    init(_ operation: String, _ path: String, _ code: CInt = errno) {
        description = "SALTERN_HANDOVER_SOCKET: \(operation) \(path): \(String(cString: strerror(code)))"
    }

    init(_ text: String) { description = "SALTERN_HANDOVER_SOCKET: \(text)" }
}

/// The system calls on Unix sockets.
enum UnixSocket {
    /// The longest path; the address ends with a zero.
    static let pathLimit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    static func open(_ path: String, nonBlocking: Bool) throws -> OwnedDescriptor {
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let flags = nonBlocking ? CInt(SOCK_NONBLOCK.rawValue) : 0
        let raw = socket(AF_UNIX, type | flags, 0)
        guard raw >= 0 else { throw HandoverFailure("socket", path) }
        return try OwnedDescriptor(takingOwnershipOf: raw)
    }

    /// Refuses a path at which there is anything but a socket: it would be lost.
    static func requireReplaceable(_ path: String) throws {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw HandoverFailure("lstat", path)
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw HandoverFailure("\(path) is there, and no socket: nothing was changed")
        }
    }

    /// Calls `body`, which is `bind` or `connect`, with the address of `path`.
    static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            for (index, byte) in path.utf8.prefix(pathLimit).enumerated() { bytes[index] = byte }
        }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// Whether the other end is a process of the same user, or of root.
    static func isTrusted(_ descriptor: CInt) -> Bool {
        let user = saltern_peer_user(descriptor)
        return user == Int(geteuid()) || user == 0
    }
}
