import EventLoop
import Foundation

/// Tells systemd what the server is at: sd_notify(3), a datagram to the socket that `NOTIFY_SOCKET` names. Without the variable,
/// and when nobody reads the socket, nothing happens.
struct ServiceManager: Sendable {
    /// The socket's path; one that begins with `@` is a name without a file.
    private let socket: String?

    init(_ environment: [String: String]) {
        let path = environment["NOTIFY_SOCKET"] ?? ""
        let isUsable = path.hasPrefix("/") || path.hasPrefix("@")
        socket = isUsable && path.utf8.count <= UnixSocket.pathLimit ? path : nil
    }

    /// The server accepts connections.
    func ready() { send("READY=1\nSTATUS=Serving") }

    /// The server waits for the database; its start goes on.
    func waiting() { send("STATUS=Waiting for the database\nEXTEND_TIMEOUT_USEC=120000000") }

    /// The server finishes what is under way and ends.
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
        // The length tells where a name without a file ends.
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
