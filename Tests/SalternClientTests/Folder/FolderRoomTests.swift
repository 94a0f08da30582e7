import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Files for which the plan has no room, and files that were interrupted, against a real server.
@Suite struct FolderRoomTests {
    private static let piece = SalternClient.Attachment.chunkByteCount

    private func withDevice(_ body: (FolderDevice, LiveServer, PutTargets) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let device = try await FolderDevice("phone", server, isFirst: true)
            try await body(device, server, PutTargets(device.device.link))
        }
    }

    private func text(pieces: Int, _ first: String = "a") -> String {
        String(repeating: first, count: Self.piece * pieces - 1) + "b"
    }

    @Test func `a file for which there is no room leaves the others alone, and goes up when there is`() async throws {
        try await withDevice { device, server, puts in
            try await server.database.administer("UPDATE saltern.plans SET max_bytes = 2000000")
            try device.write(text(pieces: 4), to: "big")
            try device.write(text(pieces: 2), to: "long")
            try device.write("short", to: "short")
            let report = try await device.sync.run()
            #expect(Set(report.uploaded.map(\.text)) == ["long", "short"])
            #expect(report.warnings.map(\.kind) == [.noRoom])
            #expect(report.warnings.map(\.path) == ["big"])
            let shortage = try #require(report.warnings.first?.shortage)
            #expect(shortage.limit == .bytes)
            #expect(shortage.needed > 4 * 524_288)
            #expect(shortage.free < shortage.needed)
            #expect(puts.take().filter { $0 != "/v1/account" }.count == 2)
            // Nothing of it is sent again, nor read.
            for _ in 0..<2 {
                let next = try await device.sync.run()
                #expect(next.warnings.map(\.kind) == [.noRoom])
                #expect(next.uploaded.isEmpty)
                #expect(puts.take() == ["/v1/account"])
            }
            // There is room; or it is another file.
            try await server.database.administer("UPDATE saltern.plans SET max_bytes = 20000000")
            #expect(try await device.sync.run().uploaded.map(\.text) == ["big"])
            try await server.database.administer("UPDATE saltern.plans SET max_bytes = 4000000")
            _ = puts.take()
            try device.write(text(pieces: 4, "c"), to: "big")
            #expect(try await device.sync.run().warnings.map(\.kind) == [.noRoom])
            try device.write("small", to: "big")
            let last = try await device.sync.run()
            #expect(last.uploaded.map(\.text) == ["big"])
            #expect(last.warnings.isEmpty)
            #expect(puts.take().filter { $0 != "/v1/account" }.isEmpty)
        }
    }

    @Test func `a new file that was interrupted goes on, and is taken back when it is gone`() async throws {
        try await withDevice { device, _, puts in
            try device.write(text(pieces: 2) + text(pieces: 2, "c"), to: "long")
            await interrupt(device)
            let first = Set(puts.take().filter { $0 != "/v1/account" })
            #expect(!first.isEmpty && first.count < 4)
            #expect(try await device.vault.account().usage.items > 0)
            try await device.sync.run()
            let rest = puts.take().filter { $0 != "/v1/account" }
            #expect(first.union(rest).count == 4)
            #expect(rest.count <= 4 - first.count + 1)
            let usage = try await device.vault.account().usage.items
            #expect(usage == 5)
            try device.write(text(pieces: 2, "d") + text(pieces: 2, "e"), to: "other")
            await interrupt(device)
            #expect(try await device.vault.account().usage.items > usage)
            try device.remove("other")
            try await device.sync.run()
            #expect(try await device.vault.account().usage.items == usage)
        }
    }

    @Test func `what was sent of a new content is taken back when the file is what it was`() async throws {
        try await withDevice { device, server, puts in
            let before = text(pieces: 4)
            try device.write(before, to: "long")
            try await device.sync.run()
            let usage = try await device.vault.account().usage.items
            // The end of it is the same.
            try device.write(text(pieces: 3, "c") + text(pieces: 1), to: "long")
            await interrupt(device)
            #expect(try await device.vault.account().usage.items > usage)
            try device.write(before, to: "long")
            let report = try await device.sync.run()
            #expect(report.uploaded.isEmpty)
            #expect(try await device.vault.account().usage.items == usage)
            // What is gone on with is not taken back, nor what both contents have.
            _ = puts.take()
            try device.write(text(pieces: 3, "d") + text(pieces: 1), to: "long")
            await interrupt(device)
            let first = Set(puts.take().filter { $0 != "/v1/account" })
            try await device.sync.run()
            let rest = puts.take().filter { $0 != "/v1/account" }
            #expect(first.union(rest).count == 3)
            #expect(rest.count <= 3 - first.count + 1)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try await laptop.sync.run()
            #expect(laptop.read("long") == text(pieces: 3, "d") + text(pieces: 1))
        }
    }

    /// A sync of the folder that is cancelled while it sends.
    private func interrupt(_ device: FolderDevice) async {
        device.device.link.interrupt(
            LossyTransport.Interruption(exchange: 4, moment: .beforeRequest) {
                withUnsafeCurrentTask { $0?.cancel() }
            })
        let task = Task { try await device.sync.run() }
        await #expect { try await task.value } throws: { ($0 as? FolderError)?.code == "cancelled" }
    }
}

/// Where chunks were sent to, and how often the plan was asked for.
private final class PutTargets: Sendable {
    private let targets = Mutex<[String]>([])

    init(_ link: LossyTransport) {
        link.setAnswer { [self] request in
            let isChunk = request.method == .put && request.target.contains("/body?")
            if isChunk || request.target == "/v1/account" { targets.withLock { $0.append(request.target) } }
            return nil
        }
    }

    func take() -> [String] {
        targets.withLock { targets in
            defer { targets = [] }
            return targets
        }
    }
}
