import Foundation
import Testing

/// Two connected non-blocking sockets, closed at the end.
final class SocketPair {
    let server: Int32
    let client: Int32
    private var open: Set<Int32>

    init() throws {
        Self.ignoreBrokenPipes
        var descriptors: [Int32] = [-1, -1]
        #if canImport(Glibc)
            let type = Int32(SOCK_STREAM.rawValue)
        #else
            let type = SOCK_STREAM
        #endif
        try #require(socketpair(AF_UNIX, type, 0, &descriptors) == 0)
        server = descriptors[0]
        client = descriptors[1]
        open = [server, client]
        for descriptor in descriptors { try #require(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0) }
    }

    deinit {
        for descriptor in open { close(descriptor) }
    }

    /// Closes one end, without a word in TLS.
    func cut(_ descriptor: Int32) {
        if open.remove(descriptor) != nil { close(descriptor) }
    }

    /// Sends bytes as they are.
    func send(_ bytes: [UInt8], from descriptor: Int32) throws {
        try #require(write(descriptor, bytes, bytes.count) == bytes.count)
    }

    /// The executable does this at its start; in the tests it happens once, with the first socket.
    static let ignoreBrokenPipes: Void = { _ = signal(SIGPIPE, SIG_IGN) }()
}
