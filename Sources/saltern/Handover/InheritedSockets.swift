import CUnixSocket
import CommandLineKit
import EventLoop
import Foundation
import HTTPServer

/// What a starting server gets from the one that serves: its listening sockets, with the connections that wait there.
final class InheritedSockets: Sendable {
    let api: ListeningSockets
    let metrics: ListeningSockets
    private let path: String
    private let channel: SharedDescriptor

    private init(api: ListeningSockets, metrics: ListeningSockets, path: String, channel: SharedDescriptor) {
        self.path = path
        self.api = api
        self.metrics = metrics
        self.channel = channel
    }

    /// How long the other server may take to answer.
    private static let patience = 10
    /// Servers that start together take over from each other, one after the other. One that hangs meanwhile is waited for
    /// by the one that serves, and that has to be outlasted.
    private static let attempts = 80
    private static let pause = Duration.milliseconds(250)

    /// Asks the server that `path` leads to. A thread of its own waits for the answer.
    /// - Returns: Nil when nobody serves.
    static func claim(from path: String) async throws -> InheritedSockets? {
        for _ in 0..<attempts {
            guard let channel = try await onOwnThread({ try reach(path) }) else { return nil }
            guard UnixSocket.isTrusted(channel.rawValue) else {
                throw HandoverFailure("\(path) belongs to a process of another user")
            }
            if let inherited = try await onOwnThread({ try receive(channel, path) }) { return inherited }
            // It has just been taken over from by somebody else.
            try await Task.sleep(for: pause)
        }
        throw HandoverFailure("the server at \(path) hands nothing over")
    }

    /// Returns whether a server listens at `path`.
    static func isOffered(at path: String) async throws -> Bool { try await onOwnThread { try reach(path) != nil } }

    /// How often it is looked whether one that has not answered still listens, within a second.
    private static let pollLimit = 10

    /// A connection to the server that `path` leads to; nil when there is none.
    private static func reach(_ path: String) throws -> SharedDescriptor? {
        let channel = try SharedDescriptor(UnixSocket.open(path, nonBlocking: false))
        UnixSocket.setPatience(patience, of: channel.rawValue)
        if UnixSocket.withAddress(path, { connect(channel.rawValue, $0, $1) }) == 0 { return channel }
        if errno == ENOENT || errno == ECONNREFUSED { return nil }
        throw HandoverFailure("connect", path)
    }

    /// - Returns: Nil when the server hands over to somebody else, or has just done so.
    private static func receive(_ channel: SharedDescriptor, _ path: String) throws -> InheritedSockets? {
        var descriptors = [CInt](repeating: -1, count: HandoverMessage.descriptorLimit)
        var count: CInt = 0
        var bytes = [UInt8](repeating: 0, count: 256)
        let length = saltern_receive_descriptors(channel.rawValue, &bytes, bytes.count, &descriptors, &count)
        let code = errno
        // Owned before anything is thrown.
        let message = HandoverMessage(String(decoding: bytes.prefix(max(length, 0)), as: UTF8.self))
        let apiCount = min(message?.apiCount ?? 0, Int(count))
        let api = ListeningSockets(takingOwnershipOf: Array(descriptors[..<apiCount]))
        let metrics = ListeningSockets(takingOwnershipOf: Array(descriptors[apiCount..<Int(count)]))
        if length == 0 || length < 0 && code == ECONNRESET { return nil }
        guard length > 0 else { throw HandoverFailure("recvmsg", path, code) }
        guard let message, message.apiCount + message.metricsCount == Int(count) else {
            throw HandoverFailure(
                "what answers at \(path) is no server that this one can take over from: stop it, then start this one")
        }
        return InheritedSockets(api: api, metrics: metrics, path: path, channel: channel)
    }

    /// Tells the other server that this one is ready, and waits until it gives way, on a thread of its own.
    /// - Throws: ``HandoverFailure`` when the other one goes on: this one shall not serve.
    func takePlace() async throws { try await onOwnThread { try self.waitForPlace() } }

    private func waitForPlace() throws {
        _ = UnixSocket.send(HandoverMessage.readiness, on: channel.rawValue)
        if isNotified() { return }
        // One that has died does not answer, and what it left is this one's all the same. The system closes what it had
        // one after the other: for a moment it may still seem to listen.
        for attempt in 0..<Self.pollLimit {
            if attempt > 0 { usleep(100_000) }
            if try Self.reach(path) == nil { return }
        }
        throw HandoverFailure("the server at \(path) goes on, and has not waited for this one")
    }

    private func isNotified() -> Bool {
        if receives() { return true }
        // From here on the other one cannot say it any more, and knows that. It may have, just now.
        shutdown(channel.rawValue, CInt(SHUT_RD))
        return receives()
    }

    private func receives() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = recv(channel.rawValue, &bytes, bytes.count, 0)
        return count > 0 && bytes.prefix(count).elementsEqual(HandoverMessage.yield.utf8)
    }
}
