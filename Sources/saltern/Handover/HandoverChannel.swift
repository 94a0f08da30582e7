import CUnixSocket
import EventLoop
import Foundation
import HTTPServer

/// A message of the handover protocol between two servers, over a Unix socket.
///
/// The old server sends one line, `saltern 1 api=2 metrics=1`, with as many descriptors. The new one prepares and sends
/// `ready`. The old one stops accepting and replies `yours`. Only then the new one accepts connections and moves to the
/// path. Until the reply, the old server serves. Whichever of them dies or hangs at any time, one of them serves and
/// can hand over again.
struct HandoverMessage: Equatable {
    /// The number of sockets for the API, and for metrics.
    var apiCount: Int
    var metricsCount: Int

    static let readiness = "ready\n"
    static let yield = "yours\n"
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

/// The reason why a handover failed.
struct HandoverFailure: Error, CustomStringConvertible {
    let description: String

    init(_ operation: String, _ path: String, _ code: CInt = errno) {
        description = "\(Setting.handoverSocket): \(operation) \(path): \(String(cString: strerror(code)))"
    }

    init(_ text: String) { description = "\(Setting.handoverSocket): \(text)" }
}

enum UnixSocket {
    /// The maximum length of a path. The address ends with a zero byte.
    static let pathLimit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    static func open(_ path: String, nonBlocking: Bool) throws -> OwnedDescriptor {
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let flags = nonBlocking ? CInt(SOCK_NONBLOCK.rawValue) : 0
        let raw = socket(AF_UNIX, type | flags, 0)
        guard raw >= 0 else { throw HandoverFailure("socket", path) }
        return try OwnedDescriptor(takingOwnershipOf: raw)
    }

    /// Rejects a path with a file that is no socket and would be lost.
    static func requireReplaceable(_ path: String) throws {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw HandoverFailure("lstat", path)
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw HandoverFailure("\(path) exists and is not a socket: nothing was changed")
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

    /// Sets the time limit of calls on `descriptor`.
    static func setPatience(_ seconds: Int, of descriptor: CInt) {
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// Sends a short text. Returns true if all of it was sent.
    static func send(_ text: String, on descriptor: CInt) -> Bool {
        let bytes = Array(text.utf8)
        return Foundation.send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count
    }

    /// Returns true if the peer is a process of the same user or of root.
    static func isTrusted(_ descriptor: CInt) -> Bool {
        let user = saltern_peer_user(descriptor)
        return user == Int(geteuid()) || user == 0
    }
}

/// A descriptor with several owners.
final class SharedDescriptor: Sendable {
    private let descriptor: OwnedDescriptor
    var rawValue: CInt { descriptor.rawValue }
    init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }
}
