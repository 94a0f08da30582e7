import Foundation
import Testing
import TransportSecurity

/// A TLS server on the loopback interface that answers each connection once, for clients from outside.
final class LoopbackServer {
    let port: UInt16
    private let listener: Int32
    private let thread: Thread
    private let finished = DispatchSemaphore(value: 0)

    init(context: TLSServerContext) throws {
        SocketPair.ignoreBrokenPipes
        let type = Int32(SOCK_STREAM.rawValue)
        let listener = socket(AF_INET, type, 0)
        try #require(listener >= 0)
        try #require(fcntl(listener, F_SETFD, FD_CLOEXEC) == 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port: UInt16? =
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    bind(listener, generic, length) == 0 && listen(listener, 16) == 0
                        && getsockname(listener, generic, &length) == 0
                }
            } ? UInt16(bigEndian: address.sin_port) : nil
        self.port = try #require(port)
        let finished = finished
        thread = Thread {
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { break }
                Self.serve(descriptor, context)
                close(descriptor)
            }
            finished.signal()
        }
        thread.start()
    }

    deinit {
        // Wakes accept(); the descriptor is closed when nobody can be using it any more.
        shutdown(listener, Int32(SHUT_RDWR))
        finished.wait()
        close(listener)
    }

    private static func serve(_ descriptor: Int32, _ context: TLSServerContext) {
        guard fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0, fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0,
            let connection = try? TLSConnection(context: context, descriptor: descriptor)
        else { return }
        do throws(TLSError) {
            while try connection.handshake() != .finished { wait(descriptor) }
            var request: [UInt8] = []
            while !request.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                var buffer = [UInt8](repeating: 0, count: 1024)
                var span = buffer.mutableSpan
                let result = try span.withUnsafeMutableBytes { bytes throws(TLSError) in
                    try connection.read(into: bytes)
                }
                switch result {
                case .bytes(let count): request += buffer.prefix(count)
                case .wantsRead, .wantsWrite: wait(descriptor)
                case .closed: return
                }
            }
            let body = "resumed=\(connection.wasResumed)\n"
            let reply = Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
            _ = try reply.span.bytes.withUnsafeBytes { bytes throws(TLSError) in try connection.write(bytes) }
            connection.shutdown()
        } catch {
            return
        }
    }

    private static func wait(_ descriptor: Int32) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, 5000)
    }
}
