import CUnixSocket
import CommandLineKit
import EventLoop
import Foundation
import HTTPServer

/// The listening sockets that a starting server receives from the running one, with their pending connections.
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

    /// The time limit of the other server's replies, in seconds.
    private static let patience = 10
    /// The maximum number of attempts.
    ///
    /// Servers that start together take over from each other in sequence. The running server waits for one that hangs,
    /// and this server has to wait longer than that.
    private static let attempts = 80
    private static let pause = Duration.milliseconds(250)

    /// Requests the sockets from the server at `path`. A separate thread waits for the reply.
    /// - Returns: Nil when no server runs.
    static func claim(from path: String) async throws -> InheritedSockets? {
        for _ in 0..<attempts {
            guard let channel = try await onOwnThread({ try reach(path) }) else { return nil }
            guard UnixSocket.isTrusted(channel.rawValue) else {
                throw HandoverFailure("\(path) belongs to a process of another user")
            }
            if let inherited = try await onOwnThread({ try receive(channel, path) }) { return inherited }
            // Another server has just taken over.
            try await Task.sleep(for: pause)
        }
        throw HandoverFailure("the server at \(path) hands over no sockets")
    }

    /// Returns true if a server listens at `path`.
    static func isOffered(at path: String) async throws -> Bool { try await onOwnThread { try reach(path) != nil } }

    /// The number of checks, within a second, whether a silent server still listens.
    private static let pollLimit = 10

    /// Connects to the server at `path`; nil when there is none.
    private static func reach(_ path: String) throws -> SharedDescriptor? {
        let channel = try SharedDescriptor(UnixSocket.open(path, nonBlocking: false))
        UnixSocket.setPatience(patience, of: channel.rawValue)
        if UnixSocket.withAddress(path, { connect(channel.rawValue, $0, $1) }) == 0 { return channel }
        if errno == ENOENT || errno == ECONNREFUSED { return nil }
        throw HandoverFailure("connect", path)
    }

    /// - Returns: Nil when the server hands over to another one, or has just done so.
    private static func receive(_ channel: SharedDescriptor, _ path: String) throws -> InheritedSockets? {
        var descriptors = [CInt](repeating: -1, count: HandoverMessage.descriptorLimit)
        var count: CInt = 0
        var bytes = [UInt8](repeating: 0, count: 256)
        let length = saltern_receive_descriptors(channel.rawValue, &bytes, bytes.count, &descriptors, &count)
        let code = errno
        // Owned before an error is thrown.
        let message = HandoverMessage(String(decoding: bytes.prefix(max(length, 0)), as: UTF8.self))
        let apiCount = min(message?.apiCount ?? 0, Int(count))
        let api = ListeningSockets(takingOwnershipOf: Array(descriptors[..<apiCount]))
        let metrics = ListeningSockets(takingOwnershipOf: Array(descriptors[apiCount..<Int(count)]))
        if length == 0 || length < 0 && code == ECONNRESET { return nil }
        guard length > 0 else { throw HandoverFailure("recvmsg", path, code) }
        guard let message, message.apiCount + message.metricsCount == Int(count) else {
            throw HandoverFailure(
                "the process at \(path) does not support this handover: stop it, then start this server")
        }
        return InheritedSockets(api: api, metrics: metrics, path: path, channel: channel)
    }

    /// Reports readiness to the other server and waits until it gives way, on a separate thread.
    /// - Throws: ``HandoverFailure`` when the other server continues. This one must not serve then.
    func takePlace() async throws { try await onOwnThread { try self.waitForPlace() } }

    private func waitForPlace() throws {
        _ = UnixSocket.send(HandoverMessage.readiness, on: channel.rawValue)
        if isNotified() { return }
        // A dead server does not reply, and its place is free. The system closes its sockets one after the other, so it
        // may seem to listen for a moment.
        for attempt in 0..<Self.pollLimit {
            if attempt > 0 { usleep(100_000) }
            if try Self.reach(path) == nil { return }
        }
        throw HandoverFailure("the server at \(path) continues and did not wait for this one")
    }

    private func isNotified() -> Bool {
        if receives() { return true }
        // From here on the other server cannot send the reply, and its attempt fails. It may have sent it just before.
        shutdown(channel.rawValue, CInt(SHUT_RD))
        return receives()
    }

    private func receives() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = recv(channel.rawValue, &bytes, bytes.count, 0)
        return count > 0 && bytes.prefix(count).elementsEqual(HandoverMessage.yield.utf8)
    }
}
