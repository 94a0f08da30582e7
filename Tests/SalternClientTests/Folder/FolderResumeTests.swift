import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// A file that was fetched in part goes on at the chunk where the download was cut off.
@Suite struct FolderResumeTests {
    private static let chunk = Attachment.chunkByteCount

    private func content(_ count: Int, seed: UInt64) -> Data {
        var random = SeededGenerator(seed: seed)
        return Data((0..<count / 8).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } })
    }

    /// Counts the chunks that the server has given out, and loses every request for one after `limit` of them.
    private func count(_ device: Device, _ chunks: Set<String>, limit: Int) -> @Sendable () -> Int {
        let given = ChunkRecorder()
        device.link.setRewrite { request, reply in
            let id = String(request.target.split(separator: "/").last?.prefix(36) ?? "")
            guard request.method == .get, chunks.contains(id) else { return reply }
            if given.count >= limit { return HTTPReply(head: HTTPReplyHead(status: 503, fields: []), body: []) }
            given.add(id)
            return reply
        }
        return { given.count }
    }

    /// What happens to the file of the download between the two processes.
    enum Event: String, CaseIterable {
        case nothing, cutWithinChunk, changedByte, longer, otherVersion, removed
    }

    @Test(arguments: [TransportError.unreachable, .timedOut, .connectionLost])
    func `of many files one is tried when the line carries nothing any more`(_ error: TransportError) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            func cutOff(_ device: FolderDevice, after chunks: Int) async throws -> FolderReport {
                let passed = Mutex(0)
                let refused = Mutex(0)
                let link = device.device.link
                link.setUnreachable(as: error) { request in
                    guard request.isAboutChunk else { return passed.withLock { $0 } > chunks }
                    let isCut = passed.withLock { passed in
                        passed += 1
                        return passed > chunks
                    }
                    if isCut { refused.withLock { $0 += 1 } }
                    return isCut
                }
                defer { link.setUnreachable { _ in false } }
                let report = try await device.sync.run()
                // As often as one request is sent.
                #expect(refused.withLock { $0 } == device.device.settings.retries.attempts)
                return report
            }
            for name in 0..<6 { try content(Self.chunk + 8, seed: UInt64(name)).write(to: phone.url("film\(name)")) }
            try phone.write("short", to: "zero")
            let sending = try await cutOff(phone, after: 5)
            #expect(sending.isOffline && sending.uploaded.map(\.text) == ["film0", "film1", "zero"])
            try await phone.sync.run()
            let fetching = try await cutOff(laptop, after: 5)
            #expect(fetching.isOffline && fetching.downloaded.count == 3)
            try await laptop.sync.run()
            #expect(laptop.files() == phone.files())
        }
    }

    @Test(arguments: Event.allCases)
    func `another process goes on where the download was cut off`(_ event: Event) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            var content = content(5 * Self.chunk + 800, seed: 1)
            try content.write(to: phone.url("film"))
            try await phone.sync.run()
            var chunks = Set(try await phone.vault.chunkIDs())
            let first = count(laptop.device, chunks, limit: 3)
            _ = try? await laptop.sync.run()
            #expect(first() == 3)
            let parts = laptop.url(".saltern/parts")
            let names = try FileManager.default.contentsOfDirectory(atPath: parts.path)
            let part = parts.appending(path: try #require(names.first)).path
            var expected = 3
            switch event {
            case .nothing: break
            case .cutWithinChunk:
                #expect(truncate(part, 2 * Self.chunk + 9) == 0)
                expected = 4
            case .changedByte:
                let file = try #require(FileHandle(forUpdatingAtPath: part))
                try file.seek(toOffset: UInt64(Self.chunk) + 7)
                try file.write(contentsOf: [0])
                expected = 5
            case .longer: #expect(truncate(part, 40 * Self.chunk) == 0)
            case .otherVersion:
                content.replaceSubrange(Self.chunk..<Self.chunk + 8, with: Data(count: 8))
                try content.write(to: phone.url("film"))
                try await phone.sync.run()
                chunks = Set(try await phone.vault.chunkIDs())
                expected = 5
            case .removed:
                #expect(unlink(part) == 0)
                expected = 6
            }
            // The sparse end of a file that is too long has no chunk of the content.
            let second = count(laptop.device, chunks, limit: .max)
            let (sync, _) = FolderDevice.syncs(laptop.vault, laptop.folder.path, "laptop")
            #expect(try await sync.run().downloaded.map(\.text) == ["film"])
            #expect(second() == expected)
            #expect(try Data(contentsOf: laptop.url("film")) == content)
            #expect(try FileManager.default.contentsOfDirectory(atPath: parts.path).isEmpty)
        }
    }

    @Test func `what was fetched of a file that is gone does not stay`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try content(3 * Self.chunk, seed: 1).write(to: phone.url("film"))
            try await phone.sync.run()
            let chunks = Set(try await phone.vault.chunkIDs())
            _ = count(laptop.device, chunks, limit: 1)
            _ = try? await laptop.sync.run()
            let parts = laptop.url(".saltern/parts").path
            #expect(try FileManager.default.contentsOfDirectory(atPath: parts).count == 1)
            try phone.remove("film")
            try await phone.sync.run()
            laptop.device.link.setRewrite { $1 }
            try await laptop.sync.run()
            #expect(try FileManager.default.contentsOfDirectory(atPath: parts).isEmpty)
        }
    }
}

/// The chunks that were given out.
private final class ChunkRecorder: Sendable {
    private let ids = Mutex<[String]>([])

    var count: Int { ids.withLock { $0.count } }

    func add(_ id: String) { ids.withLock { $0.append(id) } }
}

extension Vault {
    fileprivate func chunkIDs() throws -> [String] { try store.chunks().map(\.id.description) }
}

extension HTTPRequest {
    /// Whether it sends or fetches an item by itself, as chunks go.
    fileprivate var isAboutChunk: Bool { target.hasPrefix("/v1/items/") && target != "/v1/items/batch" }
}
