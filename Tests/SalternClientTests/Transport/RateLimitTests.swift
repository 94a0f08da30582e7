import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What a transport with a limit sends and receives takes at least its time. There is no upper bound: a busy machine is slow.
@Suite struct RateLimitTests {
    private static let rate = 256 << 10
    private let password = Password("password")

    /// Counts the bytes of bodies.
    private final class Counter: HTTPTransport {
        struct Moved {
            var sent = 0
            var received = 0
            /// Only one direction is waited for when both move.
            var most: Int { max(sent, received) }
        }

        private let inner: CurlTransport
        private let counted = Mutex(Moved())

        init(_ server: LiveServer, rateLimit: Int?) throws {
            inner = try CurlTransport(server.address(), rateLimit: rateLimit)
        }

        func take() -> Moved {
            counted.withLock { counted in
                defer { counted = Moved() }
                return counted
            }
        }

        func note(received byteCount: Int) { counted.withLock { $0.received += byteCount } }

        func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
            let reply = try await inner.send(request)
            counted.withLock { counted in
                counted.sent += request.body?.count ?? 0
                counted.received += reply.body.count
            }
            return reply
        }

        func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
            try await inner.stream(request)
        }
    }

    /// - Parameter minimum: How many bytes have to move, so that there is something to wait for.
    private func expectPace(_ line: Counter, _ minimum: Int, _ body: () async throws -> Void) async throws {
        _ = line.take()
        let begin = ContinuousClock.now
        try await body()
        let elapsed = ContinuousClock.now - begin
        let most = line.take().most
        #expect(most >= minimum)
        // The last piece is not waited for.
        #expect(elapsed >= .seconds(Double(most - TransferPace.piece) / Double(Self.rate)))
    }

    private func vault(_ name: String, _ server: LiveServer, isFirst: Bool) async throws -> (Vault, Counter) {
        var device = try Device(name, server)
        let line = try Counter(server, rateLimit: Self.rate)
        device.settings.transport = line
        // Chunks are sent and fetched at once.
        device.settings.attachments = AttachmentStorage(waitingByteLimit: 0, copiedByteLimit: 0)
        let vault =
            isFirst
            ? try await Vault.signUp(device.settings, userid: "ada", password: password)
            : try await Vault.logIn(device.settings, userid: "ada", password: password)
        return (vault, line)
    }

    @Test func `items, chunks, listings and downloads of a vault`() async throws {
        try await LiveServer.with { server in
            let (phone, sending) = try await vault("phone", server, isFirst: true)
            for _ in 0..<20 {
                try await phone.put(PlainItem(body: SecureRandom.secureBytes(15_000)), .random(), in: "notes")
            }
            try await expectPace(sending, 300_000) { try await phone.sync() }
            let content = SecureRandom.secureBytes(600_000)
            let id = ItemID.random()
            try await expectPace(sending, 600_000) {
                let made = try await phone.attach(AttachmentSource(content))
                try await phone.put(PlainItem(title: "photo", body: made.body()), id, in: "photos")
                try await phone.sync()
            }
            let (laptop, receiving) = try await vault("laptop", server, isFirst: false)
            try await expectPace(receiving, 300_000) { try await laptop.sync() }
            let photo = try await laptop.item(id)
            let attachment = try #require(photo.flatMap { SalternClient.Attachment($0.body) })
            try await expectPace(receiving, 600_000) {
                let fetched = try await laptop.content(of: attachment)
                #expect(fetched == content)
            }
        }
    }

    @Test func `many short requests at once, and streams beside them`() async throws {
        try await LiveServer.with { server in
            let line = try Counter(server, rateLimit: Self.rate)
            let api = SalternAPI(line)
            let key = SecretBytes(SecureRandom.secureBytes(32))
            let account = try await api.register(userid: "ada", passwordKey: key, iterations: 10_000, keyring: nil)
            let token = account.session.token
            let ids = (0..<200).map { _ in ItemID.random() }
            // libcurl's own limit would hold for each of its eight connections.
            try await expectPace(line, 400_000) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for id in ids {
                        group.addTask {
                            let content = ItemContent(
                                collection: "notes", format: "opaque", body: SecureRandom.bytes(2_000))
                            let request = try SalternAPI.request(
                                .put, "/v1/items/\(id)", token: token, fields: [("If-None-Match", "*")], content)
                            #expect(try await line.send(request).head.status == 201)
                        }
                    }
                    try await group.waitForAll()
                }
            }
            try await expectPace(line, 400_000) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for id in ids { group.addTask { _ = try await api.getItem(id, token) } }
                    try await group.waitForAll()
                }
            }
            try await expectPace(line, 600_000) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<2 {
                        group.addTask {
                            for try await piece in try await api.exportAccount(currentPasswordKey: key, token).body {
                                line.note(received: piece.count)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test func `a body that is sent in pieces arrives whole, whatever its length`() async throws {
        try await LiveServer.with { server in
            let line = try Counter(server, rateLimit: Self.rate)
            let api = SalternAPI(line)
            let account = try await api.register(
                userid: "ada", passwordKey: SecretBytes(SecureRandom.secureBytes(32)), iterations: 10_000,
                keyring: nil)
            for byteCount in [1, TransferPace.piece - 1, TransferPace.piece, TransferPace.piece + 1, 100_000] {
                let body = SecureRandom.bytes(byteCount)
                let content = ItemContent(collection: "notes", format: "opaque", body: body)
                let id = ItemID.random()
                let request = try SalternAPI.request(
                    .put, "/v1/items/\(id)", token: account.session.token, fields: [("If-None-Match", "*")], content)
                #expect(try await line.send(request).head.status == 201)
                #expect(try await api.getItem(id, account.session.token).body?.bytes == body)
            }
        }
    }

    @Test func `requests that wait for the rate end when they are cancelled, and with the transport`() async throws {
        try await LiveServer.with { server in
            var line: CurlTransport? = try CurlTransport(server.address(), rateLimit: CurlTransport.lowestRateLimit)
            let waiting = (0..<20).map { _ in
                Task { [line] in
                    let request = HTTPRequest(.post, "/v1/kdf", body: SecureRandom.secureBytes(15_000))
                    return try await line?.send(request).head.status
                }
            }
            waiting[5].cancel()
            await #expect(throws: TransportError.cancelled) { try await waiting[5].value }
            for task in waiting { task.cancel() }
            line = nil
            for task in waiting { _ = await task.result }
        }
    }
}
