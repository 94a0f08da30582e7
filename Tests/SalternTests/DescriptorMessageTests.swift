import CUnixSocket
import EventLoop
import Foundation
import Testing

/// Messages with descriptors, as another process may send them.
@Suite struct DescriptorMessageTests {
    private static let limit = Int(SALTERN_DESCRIPTOR_LIMIT)

    @Test(arguments: [0, 1, limit])
    func `as many descriptors are received as were sent`(count: Int) throws {
        let pair = try SocketPair()
        try pair.send(count)
        let (length, received) = pair.receive()
        #expect(length == 1)
        #expect(received.count == count)
        #expect(received.allSatisfy { fcntl($0, F_GETFD) == FD_CLOEXEC })
        for descriptor in received { close(descriptor) }
    }

    @Test func `a message of which descriptors were left out is refused`() throws {
        let pair = try SocketPair()
        // The kernel puts the sender's credentials in front, so that not all of the descriptors have room behind them.
        var option: CInt = 1
        let size = socklen_t(MemoryLayout<CInt>.size)
        try #require(setsockopt(pair.second.rawValue, SOL_SOCKET, SO_PASSCRED, &option, size) == 0)
        try pair.send(Self.limit)
        let (length, received) = pair.receive()
        let code = errno
        #expect(length == -1 && code == EMSGSIZE)
        #expect(received.isEmpty)
    }
}

private final class SocketPair {
    let first: OwnedDescriptor
    let second: OwnedDescriptor

    init() throws {
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        first = try OwnedDescriptor(takingOwnershipOf: ends[0])
        second = try OwnedDescriptor(takingOwnershipOf: ends[1])
    }

    /// Sends one byte, and so many descriptors.
    func send(_ count: Int) throws {
        let sent = [CInt](repeating: second.rawValue, count: count)
        let length = saltern_send_descriptors(first.rawValue, "x", 1, sent, CInt(count))
        #expect(length == 1)
    }

    func receive() -> (length: Int, descriptors: [CInt]) {
        var descriptors = [CInt](repeating: -1, count: Int(SALTERN_DESCRIPTOR_LIMIT))
        var count: CInt = 0
        var byte: UInt8 = 0
        let length = saltern_receive_descriptors(second.rawValue, &byte, 1, &descriptors, &count)
        return (length, Array(descriptors.prefix(Int(count))))
    }
}
