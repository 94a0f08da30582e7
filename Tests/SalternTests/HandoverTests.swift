import EventLoop
import Foundation
import HTTPServer
import SalternTesting
import Synchronization
import Testing

@testable import saltern

@Suite(.timeLimit(.minutes(5))) struct HandoverTests {
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
        _ sockets: ListeningSockets,
        _ body: (_ path: String, _ isTaken: @escaping @Sendable () -> Bool) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/handover"
        let loop = try EventLoop(name: "handover")
        try loop.start()
        defer { loop.stop() }
        let isTaken = SharedFlag()
        let offer = try await loop.run {
            let none = ListeningSockets(takingOwnershipOf: [])
            let offer = try HandoverOffer(at: path, loop: loop) {
                (sockets, none)
            } completion: {
                isTaken.set()
            }
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

    @Test func `what is handed over are the sockets, and the offer ends when the heir serves`() async throws {
        let sockets = try makeSockets(3)
        try await withOffer(sockets) { path, isTaken in
            let inheritance = try #require(try await Inheritance.claim(from: path))
            #expect(inheritance.api.rawValues.count == 3)
            #expect(inheritance.metrics.rawValues.isEmpty)
            let any = try #require(SocketAddress("127.0.0.1:0"))
            #expect(inheritance.api.ifListening(at: any) === inheritance.api)
            let other = try #require(SocketAddress("127.0.0.1:1"))
            #expect(inheritance.api.ifListening(at: other) == nil)
            #expect(inheritance.metrics.ifListening(at: any) == nil)
            #expect(!isTaken())
            inheritance.confirm()
            while !isTaken() { try await Task.sleep(for: .milliseconds(5)) }
            #expect(FileManager.default.fileExists(atPath: path), "the path is the heir's")
        }
    }

    @Test func `an heir that goes before it serves changes nothing, and the next one is served`() async throws {
        try await withOffer(try makeSockets(1)) { path, isTaken in
            for _ in 0..<5 {
                let heir = try await Inheritance.claim(from: path)
                #expect(heir != nil)
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
        let nobody = try await Inheritance.claim(from: directory.path + "/nobody")
        #expect(nobody == nil)
        try await withOffer(try makeSockets(1)) { path, _ in
            try FileManager.default.linkItem(atPath: path, toPath: directory.path + "/left")
        }
        let left = try await Inheritance.claim(from: directory.path + "/left")
        #expect(left == nil, "a socket that nobody listens at")
    }
}
