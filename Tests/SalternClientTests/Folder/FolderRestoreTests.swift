import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// The server's database is restored from a backup that lacks what folders hold in long files.
@Suite struct FolderRestoreTests {
    private func long(_ text: String) -> String { text + String(repeating: ".", count: 1_200_000) }

    private func withBackup(
        preparing prepare: (TemporaryDatabase) async throws -> Void = { _ in },
        _ body: (FolderDevice, LiveServer, (_ isRestored: Bool) async throws -> Void) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            try phone.write(long("yesterday"), to: "thesis")
            try await phone.sync.run()
            await server.stop()
            try await server.database.withCopy { backup in
                try await prepare(backup)
                func move(isRestored: Bool) async throws {
                    let database = isRestored ? backup.serverURL : server.database.serverURL
                    try await server.restart(timeout: .seconds(10), ["SALTERN_DATABASE_URL": database])
                    phone.device.link.change(to: try CurlTransport(server.address()))
                }
                try await move(isRestored: false)
                try await body(phone, server, move)
                try await move(isRestored: false)
            }
        }
    }

    @Test func `what only the folder has of a long file is there again for everybody`() async throws {
        try await withBackup { phone, server, move in
            try phone.write(long("today"), to: "thesis")
            try phone.write(long("new"), to: "movie")
            try await phone.sync.run()
            try await move(true)
            try await phone.sync.run()
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            for device in [laptop, phone, laptop] { #expect(try await device.sync.run().warnings.isEmpty) }
            #expect(phone.files().values.sorted() == ["new", "today", "yesterday"].map(long))
            #expect(laptop.files() == phone.files())
            // Nothing is looked for any more.
            #expect(try await phone.vault.attachmentsLackingChunks().isEmpty)
        }
    }

    @Test func `what has no room to go up again is said in each round, until there is some`() async throws {
        var backup: TemporaryDatabase?
        func setRoom(_ bytes: Int) async throws {
            try await backup?.administer("UPDATE saltern.plans SET max_bytes = \(bytes)")
        }
        try await withBackup(preparing: { backup = $0 }) { phone, _, move in
            try phone.write(long("today"), to: "thesis")
            try await phone.sync.run()
            try await setRoom(1_500_000)
            try await move(true)
            try await phone.sync.run()
            for _ in 0..<2 {
                let report = try await phone.sync.run()
                #expect(report.warnings.contains { $0.kind == .noRoom })
                #expect(try await !phone.vault.attachmentsLackingChunks().isEmpty)
            }
            try await setRoom(100_000_000)
            for _ in 0..<2 { try await phone.sync.run() }
            #expect(try await phone.sync.run().warnings.isEmpty)
            #expect(try await phone.vault.attachmentsLackingChunks().isEmpty)
        }
    }

    @Test func `what cannot go up again is in the trash, and an export names it`() async throws {
        try await withBackup { phone, _, move in
            try phone.write(long("today"), to: "thesis")
            try await phone.sync.run()
            try await move(true)
            phone.device.link.setAnswer { request in
                request.method == .put ? HTTPReply(head: HTTPReplyHead(status: 503, fields: []), body: []) : nil
            }
            _ = try? await phone.sync.run()
            let held = phone.trash().union(phone.files().values)
            #expect(held.isSuperset(of: ["today", "yesterday"].map(long)))
            let target = try TemporaryDirectory()
            let done = try await phone.vault.exportDocuments(to: URL(filePath: target.path + "/all"))
            #expect(done.documents == 1)
            #expect(done.unreadable.count == 1)
        }
    }

    @Test func `what a later version displaces is in the trash`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            for text in ["one", "two"] {
                try phone.write(text, to: "a")
                for device in [phone, laptop] { try await device.sync.run() }
            }
            #expect(laptop.files() == ["a": "two"])
            #expect(laptop.trash() == ["one"])
            // Another mode is no other content.
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: phone.url("a").path)
            for device in [phone, laptop] { try await device.sync.run() }
            #expect(laptop.trash() == ["one"])
        }
    }
}
