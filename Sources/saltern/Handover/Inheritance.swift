import CUnixSocket
import EventLoop
import Foundation
import HTTPServer

/// What a starting server gets from the one that serves: its listening sockets, with the connections that wait there.
final class Inheritance: Sendable {
    let api: ListeningSockets
    let metrics: ListeningSockets
    private let channel: SharedDescriptor

    private init(api: ListeningSockets, metrics: ListeningSockets, channel: SharedDescriptor) {
        self.api = api
        self.metrics = metrics
        self.channel = channel
    }

    /// How long the other server may take to answer.
    private static let patience = 10
    /// Servers that start together take over from each other, one after the other.
    private static let attempts = 20
    private static let pause = Duration.milliseconds(250)

    /// Asks the server that `path` leads to. Blocks the calling thread for as long as that takes to answer.
    /// - Returns: Nil when nobody serves.
    static func claim(from path: String) async throws -> Inheritance? {
        for _ in 0..<attempts {
            let channel = try SharedDescriptor(UnixSocket.open(path, nonBlocking: false))
            guard UnixSocket.withAddress(path, { connect(channel.rawValue, $0, $1) }) == 0 else {
                if errno == ENOENT || errno == ECONNREFUSED { return nil }
                throw HandoverFailure("connect", path)
            }
            guard UnixSocket.isTrusted(channel.rawValue) else {
                throw HandoverFailure("\(path) belongs to a process of another user")
            }
            if let inheritance = try receive(channel, path) { return inheritance }
            // It has just been taken over from by somebody else.
            try await Task.sleep(for: pause)
        }
        throw HandoverFailure("the server at \(path) hands nothing over")
    }

    private static func receive(_ channel: SharedDescriptor, _ path: String) throws -> Inheritance? {
        var limit = timeval(tv_sec: patience, tv_usec: 0)
        setsockopt(channel.rawValue, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var descriptors = [CInt](repeating: -1, count: HandoverMessage.descriptorLimit)
        var count: CInt = 0
        var bytes = [UInt8](repeating: 0, count: 256)
        let length = saltern_receive_descriptors(channel.rawValue, &bytes, bytes.count, &descriptors, &count)
        // Owned before anything is thrown.
        let message = HandoverMessage(String(decoding: bytes.prefix(max(length, 0)), as: UTF8.self))
        let apiCount = min(message?.apiCount ?? 0, Int(count))
        let api = ListeningSockets(takingOwnershipOf: Array(descriptors[..<apiCount]))
        let metrics = ListeningSockets(takingOwnershipOf: Array(descriptors[apiCount..<Int(count)]))
        guard length >= 0 else { throw HandoverFailure("recvmsg", path) }
        if length == 0 { return nil }
        guard let message, message.apiCount + message.metricsCount == Int(count) else {
            throw HandoverFailure("what answers at \(path) is no server of this kind")
        }
        return Inheritance(api: api, metrics: metrics, channel: channel)
    }

    /// Tells the other server that it may go.
    func confirm() {
        let text = Array(HandoverMessage.confirmation.utf8)
        _ = send(channel.rawValue, text, text.count, CInt(MSG_NOSIGNAL))
    }
}

/// A descriptor that several may refer to.
final class SharedDescriptor: Sendable {
    private let descriptor: OwnedDescriptor
    var rawValue: CInt { descriptor.rawValue }
    init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }
}
