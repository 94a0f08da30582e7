internal import Foundation
internal import Synchronization

/// A proxy between clients and PostgreSQL's socket. It cuts a connection after a number of bytes in one direction, or
/// delays replies.
public final class CuttingProxy: Sendable {
    /// The direction of bytes.
    public enum Direction: Sendable, CaseIterable {
        case toServer, toClient
    }

    /// The directory of its socket.
    public let directory: String
    private let target: String
    private let delay: Duration
    private let listener: CInt
    private let cut = Mutex<(direction: Direction, bytesLeft: Int)?>(nil)

    /// A call of the operating system that failed.
    public struct Failure: Error {
        let call: String
        let code = errno
    }

    /// - Parameters:
    ///   - target: The path of PostgreSQL's socket.
    ///   - delay: The delay of the server's replies.
    public init(to target: String, delay: Duration = .zero) throws {
        self.delay = delay
        var template = Array("/tmp/saltern-proxy-XXXXXX".utf8CString)
        guard let path = mkdtemp(&template) else { throw Failure(call: "mkdtemp") }
        directory = String(cString: path)
        self.target = target
        listener = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        let address = try Self.address(directory + "/.s.PGSQL.5432")
        guard Self.withAddress(address, { bind(listener, $0, $1) }) == 0, listen(listener, 64) == 0 else {
            throw Failure(call: "listen")
        }
        start { [self] in
            while case let client = accept(listener, nil, nil), client >= 0 { serve(client) }
            close(listener)
        }
    }

    /// Returns the URL of the same database through the proxy.
    public func url(of url: String) -> String { url + (url.contains("?") ? "&" : "?") + "host=\(directory)&port=5432" }

    /// Cuts the connection of the byte after `byteCount` others. The bytes of all connections count.
    public func cut(_ direction: Direction, after byteCount: Int) { cut.withLock { $0 = (direction, byteCount) } }

    /// Stops cutting connections.
    /// - Returns: True if a cut was still pending.
    @discardableResult
    public func disarm() -> Bool { cut.withLock { $0.take() != nil } }

    /// Accepts no further clients.
    public func stop() {
        shutdown(listener, CInt(SHUT_RDWR))
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Both ends of one connection, closed after the end of both directions.
    private final class Ends: Sendable {
        let client: CInt
        let server: CInt

        init(client: CInt, server: CInt) {
            self.client = client
            self.server = server
        }

        deinit {
            close(client)
            close(server)
        }
    }

    private func serve(_ client: CInt) {
        let ends = Ends(client: client, server: socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0))
        guard let address = try? Self.address(target),
            Self.withAddress(address, { connect(ends.server, $0, $1) }) == 0
        else { return }
        start { [self] in pass(ends, .toServer) }
        start { [self] in pass(ends, .toClient) }
    }

    private func pass(_ ends: Ends, _ direction: Direction) {
        let (source, target) = direction == .toServer ? (ends.client, ends.server) : (ends.server, ends.client)
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while case let count = read(source, &buffer, buffer.count), count > 0 {
            let passed = bytesToPass(count, direction)
            if direction == .toClient, delay > .zero { Thread.sleep(forTimeInterval: delay / .seconds(1)) }
            var sent = 0
            while sent < passed {
                let written = buffer[sent..<passed].withUnsafeBytes {
                    send(target, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
                }
                if written <= 0 { break }
                sent += written
            }
            if sent < count { break }
        }
        shutdown(source, CInt(SHUT_RDWR))
        shutdown(target, CInt(SHUT_RDWR))
    }

    private func bytesToPass(_ count: Int, _ direction: Direction) -> Int {
        cut.withLock { cut in
            guard let armed = cut, armed.direction == direction else { return count }
            cut = armed.bytesLeft >= count ? (direction, armed.bytesLeft - count) : nil
            return min(count, armed.bytesLeft)
        }
    }

    private func start(_ body: @escaping @Sendable () -> Void) {
        let thread = Thread(block: body)
        thread.stackSize = 256 * 1_024
        thread.start()
    }

    static func address(_ path: String) throws -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isShort = withUnsafeMutableBytes(of: &address.sun_path) { target in
            guard path.utf8.count < target.count else { return false }
            target.copyBytes(from: path.utf8)
            return true
        }
        guard isShort else { throw Failure(call: "sun_path") }
        return address
    }

    static func withAddress(
        _ address: sockaddr_un, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) -> CInt {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
