import EventLoop
import Foundation
import HTTPServer
import SalternTesting
import Synchronization
import Testing

@testable import saltern

@Suite(.timeLimit(.minutes(60))) struct HandoverTests {
    @Test func `the message is read as it is written, and nothing else is`() {
        let message = HandoverMessage(apiCount: 2, metricsCount: 1)
        #expect(message.text == "saltern 1 api=2 metrics=1\n")
        #expect(HandoverMessage(message.text) == message)
        for text in [
            "", "saltern 1 api=2 metrics=1", "saltern 2 api=2 metrics=1\n", "saltern 1 api=-1 metrics=1\n",
            "saltern 1 api=254 metrics=1\n", "saltern 1 api=2\n", "saltern 1 metrics=1 api=2\n",
        ] {
            #expect(HandoverMessage(text) == nil, "\(text)")
        }
    }

    /// A listening socket of the test's own, and where it listens.
    private func makeSockets(_ count: Int) throws -> ListeningSockets {
        var descriptors: [CInt] = []
        for _ in 0..<count {
            let raw = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let bound = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            #expect(bound == 0 && listen(raw, 1) == 0)
            descriptors.append(raw)
        }
        return ListeningSockets(takingOwnershipOf: descriptors)
    }

    private func withOffer(
        _ sockets: ListeningSockets, at path: String? = nil, patience: Duration = .seconds(300),
        _ body: (_ path: String, _ isTaken: @escaping @Sendable () -> Bool) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let path = path ?? directory.path + "/handover"
        let loop = try EventLoop(name: "handover")
        try loop.start()
        defer { loop.stop() }
        let isTaken = SharedFlag()
        let offer = try await loop.run {
            let none = ListeningSockets(takingOwnershipOf: [])
            let offer = try HandoverOffer(at: path, loop: loop, patience: patience) {
                (sockets, none)
            } completion: {
                isTaken.set()
            }
            try offer.open()
            return LoopBound(offer, loop: loop)
        }
        do {
            try await body(path) { isTaken.isSet }
        } catch {
            await loop.run { offer.value.end() }
            throw error
        }
        await loop.run { offer.value.end() }
    }

    private final class SharedFlag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
    }

    /// An offer that is open, and its loop.
    private func openOffer(at path: String, _ loop: EventLoop) async throws -> LoopBound<HandoverOffer> {
        try await loop.run {
            let none = ListeningSockets(takingOwnershipOf: [])
            let offer = try HandoverOffer(at: path, loop: loop) {
                (none, none)
            } completion: {
            }
            try offer.open()
            return LoopBound(offer, loop: loop)
        }
    }

    @Test func `the path is left to the heir, also when the server has ended before it is taken`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/handover"
        try await withOffer(try makeSockets(1), at: path) { path, isTaken in
            try await #require(try await InheritedSockets.claim(from: path)).takePlace()
            while !isTaken() { try await Task.sleep(for: .milliseconds(5)) }
        }
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test func `a server that ends listens no longer when its heir looks, whoever still refers to it`() async throws {
        let directory = try TemporaryDirectory()
        let (path, left) = (directory.path + "/handover", directory.path + "/left")
        let loop = try EventLoop(name: "handover")
        try loop.start()
        defer { loop.stop() }
        let offer = try await openOffer(at: path, loop)
        try FileManager.default.linkItem(atPath: path, toPath: left)
        let successor = try #require(try await InheritedSockets.claim(from: left))
        await loop.run { offer.value.end() }
        try await successor.takePlace()
        await loop.run { withExtendedLifetime(offer.value) {} }
    }

    @Test func `of two that get ready at the same time the one that was pushed aside does not take the path`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/handover"
        let loop = try EventLoop(name: "handover")
        try loop.start()
        defer { loop.stop() }
        try await loop.run {
            let none = ListeningSockets(takingOwnershipOf: [])
            let offers = try (0..<2).map { _ in
                try HandoverOffer(at: path, loop: loop) {
                    (none, none)
                } completion: {
                }
            }
            #expect(throws: HandoverFailure.self) { try offers[0].open() }
            offers[0].end()
            try offers[1].open()
            #expect(FileManager.default.fileExists(atPath: path))
            offers[1].end()
        }
    }

    @Test func `what is handed over are the sockets, and the offer ends when the heir serves`() async throws {
        let sockets = try makeSockets(3)
        try await withOffer(sockets) { path, isTaken in
            let inherited = try #require(try await InheritedSockets.claim(from: path))
            #expect(inherited.api.rawValues.count == 3)
            #expect(inherited.metrics.rawValues.isEmpty)
            let any = try #require(SocketAddress("127.0.0.1:0"))
            #expect(inherited.api.ifListening(at: any) === inherited.api)
            let other = try #require(SocketAddress("127.0.0.1:1"))
            #expect(inherited.api.ifListening(at: other) == nil)
            #expect(inherited.metrics.ifListening(at: any) == nil)
            #expect(!isTaken())
            try await inherited.takePlace()
            while !isTaken() { try await Task.sleep(for: .milliseconds(5)) }
            #expect(FileManager.default.fileExists(atPath: path), "the path is the heir's")
        }
    }

    @Test func `an heir that hangs holds up the next one for a while, and does not serve when it goes on`() async throws
    {
        try await withOffer(try makeSockets(1), patience: .milliseconds(300)) { path, isTaken in
            let hanging = try #require(try await InheritedSockets.claim(from: path))
            let next = try #require(try await InheritedSockets.claim(from: path))
            await #expect(throws: HandoverFailure.self) { try await hanging.takePlace() }
            #expect(!isTaken())
            _ = next
        }
    }

    @Test func `an heir that cannot be told has not taken over`() async throws {
        try await withOffer(try makeSockets(1)) { path, isTaken in
            let channel = try UnixSocket.open(path, nonBlocking: false)
            UnixSocket.setPatience(60, of: channel.rawValue)
            try #require(UnixSocket.withAddress(path) { connect(channel.rawValue, $0, $1) } == 0)
            var bytes = [UInt8](repeating: 0, count: 64)
            #expect(recv(channel.rawValue, &bytes, bytes.count, 0) > 0)
            shutdown(channel.rawValue, CInt(SHUT_RD))
            #expect(UnixSocket.send(HandoverMessage.readiness, on: channel.rawValue))
            // Whoever comes is served when that one has been heard.
            let successor = try #require(try await InheritedSockets.claim(from: path))
            #expect(!isTaken())
            try await successor.takePlace()
        }
    }

    @Test func `what a server left that died while it handed over is the heir's`() async throws {
        let directory = try TemporaryDirectory()
        let left = directory.path + "/left"
        var successor: InheritedSockets?
        try await withOffer(try makeSockets(1)) { path, _ in
            // Nobody removes what a process that was killed had in the file system.
            try FileManager.default.linkItem(atPath: path, toPath: left)
            successor = try await InheritedSockets.claim(from: left)
        }
        try await #require(successor).takePlace()
    }

    /// A server that dies as the system has it: what it had is closed one after the other, and what it listens at comes
    /// after the heir has looked once.
    private func dieSlowly(at listener: SharedDescriptor) {
        func accept() -> CInt { Foundation.accept(listener.rawValue, nil, nil) }
        let successor = accept()
        #expect(UnixSocket.send(HandoverMessage(apiCount: 0, metricsCount: 0).text, on: successor))
        var bytes = [UInt8](repeating: 0, count: 64)
        #expect(recv(successor, &bytes, bytes.count, 0) > 0)
        close(successor)
        close(accept())
        shutdown(listener.rawValue, CInt(SHUT_RDWR))
    }

    @Test func `a server that seems to listen for a moment after it has died is looked at again`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/handover"
        let listener = try SharedDescriptor(UnixSocket.open(path, nonBlocking: false))
        UnixSocket.setPatience(60, of: listener.rawValue)
        try #require(UnixSocket.withAddress(path) { bind(listener.rawValue, $0, $1) } == 0)
        try #require(listen(listener.rawValue, 8) == 0)
        Thread.detachNewThread { self.dieSlowly(at: listener) }
        try await #require(try await InheritedSockets.claim(from: path)).takePlace()
    }

    @Test func `a server that ends leaves alone what is another one's`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/handover"
        let loop = try EventLoop(name: "handover")
        try loop.start()
        defer { loop.stop() }
        let none = ListeningSockets(takingOwnershipOf: [])
        let offers = try await loop.run {
            let offers = try (0..<3).map { _ in
                let offer = try HandoverOffer(at: path, loop: loop) {
                    (none, none)
                } completion: {
                }
                try offer.open()
                return offer
            }
            return LoopBound(offers, loop: loop)
        }
        // The last one is at the path; the others end in the order in which they came.
        for index in 0..<2 {
            await loop.run { offers.value[index].end() }
            #expect(try await InheritedSockets.claim(from: path) != nil)
        }
        await loop.run { offers.value[2].end() }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a server that only gets ready is not found, and leaves nothing behind`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/handover"
        let loop = try EventLoop(name: "handover")
        try loop.start()
        defer { loop.stop() }
        try await loop.run {
            let none = ListeningSockets(takingOwnershipOf: [])
            let offer = try HandoverOffer(at: path, loop: loop) {
                (none, none)
            } completion: {
            }
            #expect(!FileManager.default.fileExists(atPath: path))
            offer.end()
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
    }

    @Test func `an heir that goes before it serves changes nothing, and the next one is served`() async throws {
        try await withOffer(try makeSockets(1)) { path, isTaken in
            for _ in 0..<5 {
                let successor = try await InheritedSockets.claim(from: path)
                #expect(successor != nil)
            }
            #expect(!isTaken())
        }
    }

    @Test(arguments: ["/handover", "/handover.next"])
    func `a file that is no socket is not replaced`(name: String) async throws {
        let directory = try TemporaryDirectory()
        try Data("a key".utf8).write(to: URL(fileURLWithPath: directory.path + name))
        let loop = try EventLoop(name: "handover")
        try loop.start()
        defer { loop.stop() }
        await #expect(throws: HandoverFailure.self) {
            try await loop.run {
                let offer = try HandoverOffer(at: directory.path + "/handover", loop: loop) {
                    let none = ListeningSockets(takingOwnershipOf: [])
                    return (none, none)
                } completion: {
                }
                offer.end()
            }
        }
        #expect(try String(contentsOfFile: directory.path + name, encoding: .utf8) == "a key")
    }

    @Test func `nobody at the path means that there is nothing to take over`() async throws {
        let directory = try TemporaryDirectory()
        let nobody = try await InheritedSockets.claim(from: directory.path + "/nobody")
        #expect(nobody == nil)
        try await withOffer(try makeSockets(1)) { path, _ in
            try FileManager.default.linkItem(atPath: path, toPath: directory.path + "/left")
        }
        let left = try await InheritedSockets.claim(from: directory.path + "/left")
        #expect(left == nil, "a socket that nobody listens at")
    }
}
