import HTTPCore
import HTTPServer
import SalternTesting
import Testing

/// Peers that stop, go or are torn away at every phase of a connection, in random order and company.
@Suite struct FaultTests {
    /// How far a peer comes.
    private enum Phase: CaseIterable {
        case nothing, halfHandshake, halfHead, halfShortBody, halfLongBody, halfChunk, waitingReply, reply, stream
        case endlessStream, pipeline, refusedBody
    }

    /// What it does then.
    private enum Fault: CaseIterable {
        case stop, close, reset, endSending, sendNonsense
    }

    private static func request(for phase: Phase) -> [UInt8] {
        func text(_ line: String, _ fields: String = "", _ rest: String = "") -> [UInt8] {
            Array("\(line) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n\(rest)".utf8)
        }
        switch phase {
        case .nothing: return []
        case .halfHandshake: return [0x16, 0x03, 0x01, 0x02]
        case .halfHead: return Array("GET /x HTTP/1.1\r\nHost: lo".utf8)
        case .halfShortBody:
            return text("POST /upload", "Content-Length: 80000\r\n") + [UInt8](repeating: 65, count: 70_000)
        case .halfLongBody:
            return text("POST /upload", "Content-Length: 900000\r\n") + [UInt8](repeating: 65, count: 400_000)
        case .halfChunk: return text("POST /upload", "Transfer-Encoding: chunked\r\n", "1000\r\nabc")
        case .waitingReply: return text("GET /hang")
        case .reply: return text("GET /page")
        case .stream: return text("GET /flood")
        case .endlessStream: return text("GET /endless")
        case .pipeline: return (0..<200).flatMap { text($0 % 3 == 0 ? "GET /page" : "GET /refuse") }
        case .refusedBody:
            return text("POST /upload", "X-Party: nobody\r\nContent-Length: 900000\r\n")
                + [UInt8](repeating: 65, count: 300_000)
        }
    }

    private static var configuration: HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration()
        // A witness reaches none of them, however busy the machine is.
        configuration.handshakeDeadline = .seconds(10)
        configuration.headerDeadline = .seconds(10)
        configuration.idleDeadline = .seconds(10)
        configuration.bodyWindow = .seconds(5)
        configuration.writeDeadline = .seconds(10)
        configuration.lingerDeadline = .seconds(5)
        return configuration
    }

    @Test(arguments: [false, true])
    func `whatever peers do, nothing of theirs is left, and others are served`(usesTLS: Bool) async throws {
        try await undisturbed {
            let identity = try TestIdentity()
            let configuration = Self.configuration
            try await withServer(configuration, context: usesTLS ? identity.serverContext : nil, loops: 2) { server in
                var random = SeededGenerator(seed: usesTLS ? 1 : 2)
                var held: [RawConnection] = []
                for _ in 0..<6 {
                    for phase in Phase.allCases.shuffled(using: &random) {
                        let fault = Fault.allCases.randomElement(using: &random) ?? .stop
                        let speaksTLS = usesTLS && phase != .halfHandshake
                        let client = try await server.connect(
                            speaksTLS ? identity.clientContext() : nil, receiveBuffer: 16_384, sendTimeout: .seconds(1))
                        _ = try await client.send(Self.request(for: phase))
                        if random.chance(oneIn: 2), phase == .reply || phase == .stream {
                            _ = try? await client.read(atMost: 10_000)
                        }
                        if random.chance(oneIn: 2) { try await Task.sleep(for: .milliseconds(5)) }
                        switch fault {
                        case .stop: held.append(client)
                        case .close: client.close()
                        case .reset: client.reset()
                        case .endSending:
                            client.endSending()
                            held.append(client)
                        case .sendNonsense:
                            _ = try await client.send([UInt8](repeating: 0, count: 1_000))
                            held.append(client)
                        }
                    }
                    let witness = try await server.connect(usesTLS ? identity.clientContext() : nil)
                    try await witness.send("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    #expect(try await witness.reply().text == "/x")
                    witness.close()
                }
                // What has its deadline ends by it, with its peer still there; a stream without an end has none.
                server.responder.release()
                try await server.expectNothingHeld(configuration)
                try await eventually { server.responder.streams.count.begun == server.responder.streams.count.ended }
                for client in held { client.close() }
            }
        }
    }
}
