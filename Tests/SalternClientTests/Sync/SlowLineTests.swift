import Cryptography
import Foundation
import Synchronization
import Testing

@testable import SalternClient

@Suite struct SlowLineTests {
    /// A line on which long requests end like this.
    private final class Line: HTTPTransport {
        private struct State {
            var limit = Int.max
            var sizes: [Int] = []
            var error = TransportError.timedOut
            /// The limit of pages, and the number of their changes; nil for a page that did not arrive.
            var pageLimit = Int.max
            var pages: [Int?] = []
        }

        private let inner: any HTTPTransport
        private let state = Mutex(State())

        init(_ inner: any HTTPTransport) { self.inner = inner }

        func refuse(above limit: Int, _ error: TransportError) {
            state.withLock { $0 = State(limit: limit, error: error) }
        }

        func refusePages(above limit: Int, _ error: TransportError) {
            state.withLock { $0 = State(error: error, pageLimit: limit) }
        }

        var sizes: [Int] { state.withLock { $0.sizes } }
        var pages: [Int?] { state.withLock { $0.pages } }

        func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
            if request.target == "/v1/items/batch" {
                let size = request.body?.count ?? 0
                let error = state.withLock { state in
                    state.sizes.append(size)
                    return size > state.limit ? state.error : nil
                }
                if let error { throw error }
            }
            let reply = try await inner.send(request)
            guard request.target.hasPrefix("/v1/changes") else { return reply }
            let error = state.withLock { state in
                let isCut = reply.body.count > state.pageLimit
                let count = String(decoding: reply.body, as: UTF8.self).matches(of: /"id":/).count
                state.pages.append(isCut ? nil : count)
                return isCut ? state.error : nil
            }
            if let error { throw error }
            return reply
        }

        func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
            try await inner.stream(request)
        }
    }

    /// Lends a new account's vault, and the line on which it syncs.
    private func withLine(_ body: (Vault, Line) async throws -> Void) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            let line = Line(phone.settings.transport)
            phone.settings.transport = line
            let vault = try await Vault.signUp(phone.settings, userid: "ada", password: Password("correct horse"))
            try await body(vault, line)
        }
    }

    private func put(_ count: Int, of size: Int, _ vault: Vault) async throws {
        for _ in 0..<count {
            try await vault.put(PlainItem(body: SecureRandom.secureBytes(size)), .random(), in: "notes")
        }
    }

    @Test(arguments: [TransportError.timedOut, .connectionLost])
    func `a batch that does not get through goes in smaller ones, and what arrived is not sent again`(
        _ error: TransportError
    ) async throws {
        try await withLine { vault, line in
            let size = 200_000
            try await put(12, of: size, vault)
            // Two of them fit.
            line.refuse(above: size * 3, error)
            let report = try await vault.sync()
            #expect(report.sent == 12)
            #expect(try await vault.unsentCount() == 0)
            let passed = line.sizes.filter { $0 <= size * 3 }
            #expect(passed.reduce(0, +) < 12 * (size * 4 / 3 + 2_000))
            // Each one that did not get through is sent once.
            #expect(line.sizes.count - passed.count < 12)
            // When the line is quick again batches grow.
            line.refuse(above: .max, error)
            try await put(12, of: size, vault)
            try await vault.sync()
            #expect(line.sizes.max() ?? 0 > size * 3)
        }
    }

    @Test func `an app that is ended while it sends a long batch sends smaller ones`() async throws {
        try await withLine { vault, line in
            let size = 200_000
            try await put(12, of: size, vault)
            line.refuse(above: size * 3, .cancelled)
            var ends = 0
            while try await vault.unsentCount() > 0, ends < 12 {
                _ = try? await vault.sync()
                ends += 1
            }
            #expect(try await vault.unsentCount() == 0)
            // A server that answers says nothing about the line.
            line.refuse(above: .max, .timedOut)
            try await put(12, of: size, vault)
            line.refuse(above: size * 3, .unreachable)
            await #expect(throws: VaultError.self) { try await vault.sync() }
            let refused = line.sizes.max() ?? 0
            line.refuse(above: .max, .unreachable)
            try await vault.sync()
            #expect(line.sizes.contains(refused))
        }
    }

    @Test(arguments: [TransportError.timedOut, .connectionLost, .cancelled])
    func `a page that does not arrive is fetched in shorter ones`(_ error: TransportError) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: "ada", password: Password("correct horse"))
            try await put(30, of: 50_000, vault)
            try await vault.sync()
            var laptop = try Device("laptop", server)
            let line = Line(laptop.settings.transport)
            laptop.settings.transport = line
            let other = try await Vault.logIn(laptop.settings, userid: "ada", password: Password("correct horse"))
            // Four items arrive at once.
            line.refusePages(above: 300_000, error)
            var ends = 0
            while true {
                do {
                    _ = try await other.sync()
                    break
                } catch let failure {
                    // Only the end of the process, which a cancelled exchange stands for, interrupts it.
                    try #require(error == .cancelled && ends < 12, "\(failure)")
                    ends += 1
                }
            }
            #expect(try await other.ids("notes").count == 30)
            #expect(line.pages.count { $0 == nil } < 20)
            // On a quick line pages grow again.
            line.refusePages(above: .max, error)
            for _ in 0..<8 { try await other.sync() }
            try await put(30, of: 100, vault)
            try await vault.sync()
            try await other.sync()
            #expect(line.pages.contains(30))
        }
    }

    @Test func `a line that carries nothing long gives up after some tries`() async throws {
        try await withLine { vault, line in
            try await put(40, of: 50_000, vault)
            line.refuse(above: 0, .timedOut)
            await #expect(throws: VaultError.self) { try await vault.sync() }
            #expect(line.sizes.count <= SyncLimits().slowdowns + 2)
            #expect(try await vault.unsentCount() == 40)
        }
    }

    @Test func `an upload goes on as long as its bytes move, however long it takes`() async throws {
        try await LiveServer.with { server in
            let port = try #require(URL(string: server.base)?.port)
            let relay = try SlowRelay(to: UInt16(port), bytesPerTick: 4 << 10)
            defer { relay.stop() }
            var address = try server.address()
            let api = SalternAPI(try CurlTransport(address))
            let account = try await api.register(
                userid: "ada", passwordKey: SecretBytes(SecureRandom.secureBytes(32)), iterations: 10_000, keyring: nil)
            address.base = "https://localhost:\(relay.port)"
            let transport = try CurlTransport(address)
            let content = ItemContent(
                collection: "notes", format: "opaque", body: SecureRandom.bytes(1 << 20))
            var request = try SalternAPI.request(
                .put, "/v1/items/\(ItemID.random())", token: account.session.token,
                fields: [("If-None-Match", "*")], content)
            // On a connection that is there, the upload takes more than three seconds.
            _ = try await transport.send(HTTPRequest(.get, "/v1/service"))
            request.timeout = .seconds(2)
            #expect(try await transport.send(request).head.status == 201)
        }
    }

    // The connection is there, and nothing comes on it: silence alone would end the exchange after two hours.
    @Test(.timeLimit(.minutes(60))) func `a stream whose head does not come ends`() async throws {
        try await LiveServer.with { server in
            let port = try #require(URL(string: server.base)?.port)
            let relay = try SlowRelay(to: UInt16(port), bytesPerTick: 4 << 10)
            defer { relay.stop() }
            var address = try server.address()
            address.base = "https://localhost:\(relay.port)"
            let transport = try CurlTransport(address)
            _ = try await transport.send(HTTPRequest(.get, "/v1/service"))
            relay.hold()
            var request = HTTPRequest(.get, "/v1/changes/stream", timeout: .milliseconds(100))
            request.silence = .seconds(7_200)
            await #expect(throws: TransportError.timedOut) { try await transport.stream(request) }
        }
    }

    @Test func `what moves too little for its time ends`() async throws {
        #expect(HTTPRequest.allowance(.seconds(120), 1_024, moved: 10 << 10) == .seconds(130))
        #expect(HTTPRequest.allowance(.seconds(120), 0, moved: .min) == .seconds(120))
        let silent = try SlowRelay(to: nil, bytesPerTick: 1)
        defer { silent.stop() }
        let transport = try CurlTransport(.init(base: "https://127.0.0.1:\(silent.port)", pins: []))
        await #expect(throws: TransportError.timedOut) {
            try await transport.send(HTTPRequest(.get, "/v1/service", timeout: .milliseconds(10)))
        }
    }
}

/// Carries connections to a local port, so many bytes in each hundredth of a second towards the server.
private final class SlowRelay: Sendable {
    let port: UInt16
    private let listener: Int32
    private let bytesPerTick: Int
    private let isStopped = Atomic(false)
    private let isHeld = Atomic(false)

    /// - Parameter target: Nil for a port that answers nothing.
    init(to target: UInt16?, bytesPerTick: Int) throws {
        self.bytesPerTick = bytesPerTick
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var room: Int32 = 16 << 10
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
        var address = Self.address(0)
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &length) == 0 }
        }
        guard isBound, isNamed, listen(listener, 8) == 0 else { throw TransportError.configuration(.system) }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        if let target { Thread { [self] in accept(target) }.start() }
    }

    /// Carries nothing more, and ends no connection.
    func hold() { isHeld.store(true, ordering: .relaxed) }

    func stop() {
        isStopped.store(true, ordering: .relaxed)
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    private func accept(_ target: UInt16) {
        while !isStopped.load(ordering: .relaxed) {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return }
            let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = Self.address(target)
            let isConnected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            guard isConnected else {
                close(client)
                close(server)
                continue
            }
            let ends = Mutex(2)
            let end: @Sendable () -> Void = {
                shutdown(client, Int32(SHUT_RDWR))
                shutdown(server, Int32(SHUT_RDWR))
                if ends.withLock({ ends in
                    ends -= 1
                    return ends == 0
                }) {
                    close(client)
                    close(server)
                }
            }
            Thread { [self] in carry(client, server, pause: 10_000, end) }.start()
            Thread { [self] in carry(server, client, pause: 0, end) }.start()
        }
    }

    private func carry(_ source: Int32, _ target: Int32, pause: UInt32, _ end: () -> Void) {
        var buffer = [UInt8](repeating: 0, count: bytesPerTick)
        reading: while !isStopped.load(ordering: .relaxed) {
            let count = read(source, &buffer, buffer.count)
            guard count > 0 else { break }
            while isHeld.load(ordering: .relaxed), !isStopped.load(ordering: .relaxed) { usleep(10_000) }
            var sent = 0
            while sent < count {
                let written = buffer.withUnsafeBytes {
                    send(target, $0.baseAddress?.advanced(by: sent), count - sent, Int32(MSG_NOSIGNAL))
                }
                guard written > 0 else { break reading }
                sent += written
            }
            if pause > 0 { usleep(pause) }
        }
        end()
    }
}
