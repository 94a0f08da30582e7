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
        let type = Int32(SOCK_STREAM.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &descriptors) == 0)
        server = descriptors[0]
        client = descriptors[1]
        open = [server, client]
        for descriptor in descriptors {
            try #require(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0)
            // A program that another test starts must not keep a copy of the socket open.
            try #require(fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0)
        }
    }

    deinit {
        for descriptor in open { close(descriptor) }
    }

    /// Closes one end, without a word in TLS.
    func cut(_ descriptor: Int32) {
        guard open.remove(descriptor) != nil else { return }
        close(descriptor)
        // A program that is just being started has a copy until it runs, so the other end may see it late.
        var other = pollfd(fd: descriptor == server ? client : server, events: 0, revents: 0)
        #expect(poll(&other, 1, 10_000) == 1)
    }

    /// Sends bytes as they are.
    func send(_ bytes: [UInt8], from descriptor: Int32) throws {
        try #require(write(descriptor, bytes, bytes.count) == bytes.count)
    }

    /// How many bytes a read from `descriptor` would find.
    func waitingBytes(at descriptor: Int32) -> Int {
        var buffer = [UInt8](repeating: 0, count: 65536)
        return max(recv(descriptor, &buffer, buffer.count, Int32(MSG_PEEK)), 0)
    }

    /// The executable does this at its start; in the tests it happens once, with the first socket.
    static let ignoreBrokenPipes: Void = { _ = signal(SIGPIPE, SIG_IGN) }()
}
