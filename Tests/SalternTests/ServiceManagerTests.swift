import CommandLineKit
import EventLoop
import Foundation
import HTTPServer
import Postgres
import SalternTesting
import Testing

@testable import saltern

/// What systemd is told, and which failures of a start it does not try again.
@Suite struct ServiceManagerTests {
    @Test(arguments: [false, true])
    func `each state is one datagram`(isAbstract: Bool) throws {
        let folder = try TemporaryDirectory()
        let name = isAbstract ? "@saltern-test-\(UInt64.random(in: 0 ... .max))" : folder.path + "/notify"
        let socket = try NotifySocket(name)
        let manager = ServiceManager(["NOTIFY_SOCKET": name])
        manager.waiting()
        manager.ready()
        manager.stopping()
        #expect(socket.next()?.contains("EXTEND_TIMEOUT_USEC=") == true)
        #expect(socket.next()?.hasPrefix("READY=1\n") == true)
        #expect(socket.next()?.hasPrefix("STOPPING=1\n") == true)
        #expect(socket.next() == nil)
    }

    @Test(arguments: ["", "relative", "/nowhere/at/all", "/" + String(repeating: "a", count: 200)])
    func `without a socket that can be reached nothing happens`(path: String) {
        ServiceManager(["NOTIFY_SOCKET": path]).ready()
        ServiceManager([:]).ready()
    }

    @Test func `what only a person can mend has an exit status of its own`() throws {
        let address = SocketAddress(host: "localhost", port: 443)
        let refused = PostgresError.unavailable(retryAfter: .seconds(1), because: .server(SQLState("28P01")))
        for error: any Error in [
            refused, MigrationError.database(refused), ListenError.system(address, operation: "bind", EACCES),
            ListenError.unresolvable(address, reason: "unknown"), MigrationError.findings([]),
        ] {
            #expect(StartFailure.start(error).status == 78, "\(error)")
        }
        let gone = PostgresError.unavailable(retryAfter: .seconds(1), because: .server(SQLState("57P03")))
        for error: any Error in [
            gone, ListenError.system(address, operation: "bind", EADDRINUSE), HandoverFailure("x"),
        ] {
            #expect(StartFailure.start(error).status == 1, "\(error)")
        }
        #expect(throws: CommandFailure.self) {
            try StartFailure.checking { () throws(CommandFailure) in throw CommandFailure("a setting") }
        }
    }
}

/// A socket that receives datagrams as systemd does.
private final class NotifySocket {
    private let descriptor: OwnedDescriptor

    init(_ name: String) throws {
        let raw = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        descriptor = try OwnedDescriptor(takingOwnershipOf: raw)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            for (index, byte) in name.utf8.enumerated() { bytes[index] = byte }
            if name.hasPrefix("@") { bytes[0] = 0 }
        }
        let length = socklen_t(2 + name.utf8.count)
        let result = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(raw, $0, length) }
        }
        try #require(result == 0)
    }

    /// The next datagram; nil when none waits.
    func next() -> String? {
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = recv(descriptor.rawValue, &bytes, bytes.count, CInt(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
