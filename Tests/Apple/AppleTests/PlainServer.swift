import Foundation
import Glibc
import Synchronization
import Testing

/// A server without TLS that answers each connection's first request with what a test says, until the process ends: a test
/// is done with it when it has sent its last request, and not when that was accepted.
final class PlainServer: Sendable {
    /// One connection, whose head was read.
    struct Connection: Sendable {
        let descriptor: Int32
        let head: String

        /// - Returns: false when the client has gone.
        @discardableResult func write(_ bytes: [UInt8]) -> Bool {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }

        @discardableResult func write(_ text: String) -> Bool { write(Array(text.utf8)) }
    }

    let base: String

    init(_ answer: @escaping @Sendable (Connection) -> Void) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        try #require(isListening)
        base = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
        Thread.detachNewThread {
            while case let descriptor = accept(listener, nil, nil), descriptor >= 0 {
                Thread.detachNewThread {
                    answer(Connection(descriptor: descriptor, head: Self.head(descriptor)))
                    close(descriptor)
                }
            }
        }
    }

    private static func head(_ descriptor: Int32) -> String {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8), recv(descriptor, &byte, 1, 0) == 1 { head.append(byte) }
        return String(decoding: head, as: UTF8.self)
    }
}
