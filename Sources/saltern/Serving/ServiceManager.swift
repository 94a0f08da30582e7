import EventLoop
import Foundation

/// Reports the server's state to systemd: sd_notify(3), a datagram to the socket that `NOTIFY_SOCKET` names.
///
/// Without the variable or a reader of the socket, it has no effect.
struct ServiceManager: Sendable {
    /// The socket's path. A leading `@` marks a name without a file.
    private let socket: String?

    init(_ environment: [String: String]) {
        let path = environment["NOTIFY_SOCKET"] ?? ""
        let isUsable = path.hasPrefix("/") || path.hasPrefix("@")
        socket = isUsable && path.utf8.count <= UnixSocket.pathLimit ? path : nil
    }

    /// Reports that the server accepts connections.
    func ready() { send("READY=1\nSTATUS=Serving") }

    /// Reports that the server waits for the database, and extends the start's time limit.
    func waiting() { send("STATUS=Waiting for the database\nEXTEND_TIMEOUT_USEC=120000000") }

    /// Reports that the server finishes pending requests and ends.
    func stopping() { send("STOPPING=1\nSTATUS=Finishing requests") }

    private func send(_ text: String) {
        guard let path = socket else { return }
        let raw = Foundation.socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard raw >= 0, let descriptor = try? OwnedDescriptor(takingOwnershipOf: raw) else { return }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            for (index, byte) in path.utf8.enumerated() { bytes[index] = byte }
            if path.hasPrefix("@") { bytes[0] = 0 }
        }
        // The length marks the end of a name without a file.
        let length = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path).map { $0 + path.utf8.count } ?? 0)
        let bytes = Array(text.utf8)
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = sendto(
                    descriptor.rawValue, bytes, bytes.count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT), $0,
                    length)
            }
        }
    }
}
