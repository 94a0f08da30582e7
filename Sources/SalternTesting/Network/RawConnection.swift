internal import Dispatch
internal import EventLoop
internal import Glibc
public import TransportSecurity

/// A client's connection that sends exactly the given bytes, over TLS or plain TCP.
///
/// Its blocking calls run on a separate queue, so a waiting test delays no other. Every wait ends after a minute, so a
/// test fails instead of hanging.
// Safe to share: all stored properties are used on `queue` only, or while there is one reference.
public final class RawConnection: @unchecked Sendable {
    /// The error of a wait.
    public enum Failure: Error {
        case cannotConnect(errno: CInt)
        /// No bytes arrived within a minute.
        case timedOut
        /// The server closed the connection before the end of a response.
        case closed(after: [UInt8])
    }

    /// A response as received.
    public struct Reply: Sendable {
        public var status: Int
        /// Status line and fields.
        public var head: String
        public var body: [UInt8]

        public var text: String { String(decoding: body, as: UTF8.self) }

        /// Returns the value of a field. The case of the name is ignored.
        public func field(_ name: String) -> String? {
            for line in head.split(separator: "\r\n").dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                if parts.count == 2, parts[0].lowercased() == name.lowercased() {
                    return String(parts[1].drop { $0 == " " })
                }
            }
            return nil
        }
    }

    private let queue = DispatchQueue(label: "connection")
    private let descriptor: CInt
    /// Owns `descriptor`. Nil after closing.
    private var socket: OwnedDescriptor?
    private let tls: TLSConnection?
    private var received: [UInt8] = []
    private var isToldOfTheEnd = false

    /// Connects to a port of 127.0.0.1, with TLS if `context` is given.
    /// - Parameters:
    ///   - source: The client's own address, one of 127.0.0.0/8.
    ///   - receiveBuffer: The size of the kernel's buffer for a client that does not read. Nil for the default.
    ///   - beforeHandshake: Runs between the connection and its TLS handshake, and may block.
    public static func open(
        port: UInt16, context: TLSClientContext? = nil, source: String? = nil, receiveBuffer: Int32? = nil,
        sendTimeout: Duration = .seconds(600), beforeHandshake: @escaping @Sendable () -> Void = {}
    ) async throws -> RawConnection {
        try await blocking(on: DispatchQueue(label: "connect")) {
            try RawConnection(
                port: port, context: context, source: source, receiveBuffer: receiveBuffer, sendTimeout: sendTimeout,
                beforeHandshake: beforeHandshake)
        }
    }

    private static func blocking<Value: Sendable>(
        on queue: DispatchQueue, _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }

    private init(
        port: UInt16, context: TLSClientContext?, source: String?, receiveBuffer: Int32?, sendTimeout: Duration,
        beforeHandshake: () -> Void
    ) throws {
        // A child process of another test must not keep the connection open.
        let socket = try OwnedDescriptor(
            takingOwnershipOf: Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0),
            from: "socket")
        let descriptor = socket.rawValue
        self.descriptor = descriptor
        self.socket = consume socket
        var timeout = timeval(tv_sec: 600, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        timeout.tv_sec = Int(sendTimeout.components.seconds)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        if var receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
        }
        let isBound = source.map { Self.with($0, port: 0) { bind(descriptor, $0, $1) } == 0 } ?? true
        let connected = Self.with("127.0.0.1", port: port) { connect(descriptor, $0, $1) }
        guard isBound, connected == 0 else { throw Failure.cannotConnect(errno: errno) }
        if context != nil { Self.ignoreBrokenPipes }
        tls = try context.map { try TLSConnection(context: $0, descriptor: descriptor, hostName: "localhost") }
        beforeHandshake()
        if let tls, try tls.handshake() != .finished { throw Failure.timedOut }
    }

    /// OpenSSL writes to a connection that the server has closed, which would end the process of the tests.
    private static let ignoreBrokenPipes: Void = { _ = signal(SIGPIPE, SIG_IGN) }()

    private static func with<Result>(
        _ host: String, port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Announces the end of data. Reading continues.
    public func endSending() { queue.sync { _ = shutdown(descriptor, CInt(SHUT_WR)) } }

    /// Closes the socket with an error for the server.
    public func reset() {
        queue.sync {
            guard socket != nil else { return }
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
            socket = nil
        }
    }

    /// True when the server ended TLS with its notification.
    public var wasToldOfTheEnd: Bool { queue.sync { isToldOfTheEnd } }

    /// Reads available bytes, up to a limit. Returns their number, 0 when the server has closed.
    public func read(atMost count: Int) async throws -> Int {
        try await Self.blocking(on: queue) {
            let before = self.received.count
            if before == 0 { _ = try self.receiveMore(atMost: count) }
            defer { self.received.removeAll() }
            return self.received.count
        }
    }

    /// Closes the socket, without TLS's notification.
    public func close() {
        queue.sync { socket = nil }
    }

    /// Sends all bytes. Returns false when the server has closed.
    @discardableResult
    public func send(_ text: String) async throws -> Bool { try await send(Array(text.utf8)) }

    /// Sends all bytes. Returns false when the server has closed.
    @discardableResult
    public func send(_ bytes: [UInt8]) async throws -> Bool {
        try await Self.blocking(on: queue) { self.sendNow(bytes) }
    }

    /// Reads one response. `toHead` is true after a HEAD request.
    public func reply(toHead: Bool = false) async throws -> Reply {
        try await Self.blocking(on: queue) { try self.replyNow(toHead: toHead) }
    }

    /// Reads until `text` arrives, and returns everything up to its end.
    public func read(through text: String) async throws -> String {
        try await Self.blocking(on: queue) {
            let wanted = Array(text.utf8)
            var searched = 0
            while true {
                while searched + wanted.count <= self.received.count {
                    if self.received[searched..<(searched + wanted.count)].elementsEqual(wanted) {
                        let end = searched + wanted.count
                        defer { self.received.removeSubrange(..<end) }
                        return String(decoding: self.received[..<end], as: UTF8.self)
                    }
                    searched += 1
                }
                guard try self.receiveMore() else { throw Failure.closed(after: self.received) }
            }
        }
    }

    /// Reads like a client on a slow line: at most `count` bytes at a time, ten times a second. Returns the number of
    /// bytes, or nil when the server has closed.
    public func readSlowly(atMost count: Int, for seconds: Int) async throws -> Int? {
        try await Self.blocking(on: queue) {
            var total = self.received.count
            self.received.removeAll()
            // Runs on this queue, so that many tasks of other tests do not delay it.
            for _ in 0..<(10 * seconds) {
                guard try self.receiveMore(atMost: count) else { return nil }
                total += self.received.count
                self.received.removeAll()
                usleep(100_000)
            }
            return total
        }
    }

    /// Reads until `count` bytes have arrived, and returns their number: fewer when the server has closed.
    public func readUntil(count: Int) async throws -> Int {
        try await Self.blocking(on: queue) {
            var total = self.received.count
            self.received.removeAll()
            while total < count, try self.receiveMore() {
                total += self.received.count
                self.received.removeAll()
            }
            return total
        }
    }

    /// Waits until the server closes, and returns the bytes before that.
    public func readUntilClosed() async throws -> [UInt8] {
        try await Self.blocking(on: queue) {
            while try self.receiveMore() {}
            return self.received
        }
    }

    private func sendNow(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { buffer -> Int in
                guard let tls else {
                    return Glibc.send(descriptor, buffer.baseAddress, buffer.count, CInt(MSG_NOSIGNAL))
                }
                guard case .bytes(let count)? = try? tls.write(buffer) else { return -1 }
                return count
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    private func replyNow(toHead: Bool) throws -> Reply {
        while true {
            if let end = endOfHead() {
                let head = String(decoding: received[..<end], as: UTF8.self)
                var reply = Reply(status: Int(head.dropFirst(9).prefix(3)) ?? 0, head: head, body: [])
                let length = toHead ? 0 : reply.field("Content-Length").flatMap(Int.init) ?? 0
                while received.count < end + length {
                    guard try receiveMore() else { throw Failure.closed(after: received) }
                }
                reply.body = Array(received[end..<(end + length)])
                received.removeSubrange(..<(end + length))
                return reply
            }
            guard try receiveMore() else { throw Failure.closed(after: received) }
        }
    }

    private func endOfHead() -> Int? {
        guard received.count >= 4 else { return nil }
        for index in 0...(received.count - 4) where received[index..<(index + 4)].elementsEqual([13, 10, 13, 10]) {
            return index + 4
        }
        return nil
    }

    /// Receives more bytes. Returns false when the server has closed.
    private func receiveMore(atMost limit: Int = 64 * 1_024) throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = try buffer.withUnsafeMutableBytes { buffer -> Int in
            guard let tls else {
                let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
                if count < 0, errno == EAGAIN { throw Failure.timedOut }
                return max(count, 0)
            }
            do {
                switch try tls.read(into: buffer) {
                case .bytes(let count): return count
                case .closed:
                    isToldOfTheEnd = true
                    return 0
                case .wantsRead, .wantsWrite: throw Failure.timedOut
                }
            } catch is TLSError {
                return 0
            }
        }
        received.append(contentsOf: buffer[..<count])
        return count > 0
    }
}
