import CPlatform
import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What is in the trash of a folder and of a vault: it is not removed by one reading of the clock, and what a program writes
/// to it is not lost.
@Suite struct FolderTrashTests {
    private static let day: TimeInterval = 86_400

    /// A clock that a test sets.
    private final class Clock: Sendable {
        private let offset = Mutex(TimeInterval(0))

        func set(_ days: TimeInterval) { offset.withLock { $0 = days * FolderTrashTests.day } }
        func now() -> Date { Date().addingTimeInterval(offset.withLock { $0 }) }

        /// The server's clock goes as this one does.
        func confirm(_ link: LossyTransport) {
            link.setRewrite { [self] _, reply in
                HTTPReply(head: reply.head.replacing("Date", Self.text(now())), body: reply.body)
            }
        }

        private static func text(_ date: Date) -> String {
            let formatter = DateFormatter()
            formatter.locale = Locale(identifier: "en_US_POSIX")
            formatter.timeZone = TimeZone(identifier: "GMT")
            formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
            return formatter.string(from: date)
        }
    }

    private func withPair(
        _ body: (FolderDevice, FolderDevice, Clock) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let clock = Clock()
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false) { $0.now = { clock.now() } }
            try await body(phone, laptop, clock)
        }
    }

    /// A file and a note that were deleted elsewhere.
    private func deleteElsewhere(_ phone: FolderDevice, _ laptop: FolderDevice) async throws -> ItemID {
        let note = ItemID.random()
        try phone.write("kept", to: "a")
        try phone.write("displaced", to: "b")
        try await phone.vault.put(PlainItem(body: SecureBytes(copying: Array("note".utf8))), note, in: "notes")
        try await phone.sync.run()
        try await laptop.sync.run()
        try phone.remove("a")
        try phone.write("new", to: "b")
        try await phone.vault.delete(note)
        try await phone.sync.run()
        try await laptop.sync.run()
        #expect(laptop.trash() == ["kept", "displaced"])
        #expect(try await laptop.vault.deletedItems().contains { $0.id == note })
        return note
    }

    @Test(arguments: [40.0, 4_000, -4_000])
    func `a clock that leaps removes nothing, and what is trashed meanwhile stays when it is right again`(
        _ days: Double
    ) async throws {
        try await withPair { phone, laptop, clock in
            try await laptop.sync.run()
            clock.set(days)
            let note = try await deleteElsewhere(phone, laptop)
            for next in [0, days, 0] {
                clock.set(next)
                try await laptop.sync.run()
                #expect(laptop.trash() == ["kept", "displaced"], "\(next)")
                #expect(try await laptop.vault.deletedItems().contains { $0.id == note })
            }
        }
    }

    /// A machine that was off, or a clock and a server that are both wrong: one reading counts as a few days.
    @Test func `one reading removes nothing also when the server confirms it; many do in time`() async throws {
        try await withPair { phone, laptop, clock in
            let note = try await deleteElsewhere(phone, laptop)
            clock.confirm(laptop.device.link)
            var days = 40.0
            clock.set(days)
            for number in 0..<4 {
                try await laptop.sync.run()
                #expect(laptop.trash() == ["kept", "displaced"], "\(number)")
                #expect(try await laptop.vault.deletedItems().contains { $0.id == note })
                days += 40
                clock.set(days)
            }
            for _ in 0..<3 {
                try await laptop.sync.run()
                days += 7
                clock.set(days)
            }
            #expect(laptop.trash().isEmpty)
            #expect(try await laptop.vault.deletedItems().isEmpty)
        }
    }

    @Test func `nothing is removed without the server`() async throws {
        try await withPair { phone, laptop, clock in
            _ = try await deleteElsewhere(phone, laptop)
            clock.confirm(laptop.device.link)
            for days in stride(from: 7.0, through: 21, by: 7) {
                clock.set(days)
                try await laptop.sync.run()
            }
            laptop.device.link.setUnreachable(true)
            for days in stride(from: 28.0, through: 70, by: 7) {
                clock.set(days)
                #expect(try await laptop.sync.run().isOffline)
            }
            #expect(laptop.trash() == ["kept", "displaced"])
        }
    }

    @Test func `what is unnamed for long enough is not swept by one reading of the clock`() async throws {
        try await withPair { _, laptop, clock in
            _ = try await laptop.vault.attach(
                AttachmentSource(SecureBytes(copying: [UInt8](repeating: 7, count: 600_000))))
            for days in [0.0, 40, 80] {
                clock.set(days)
                #expect(try await laptop.vault.sweepChunks() == 0)
            }
        }
    }

    @Test func `the server's clock confirms one that is at most a day away from it`() throws {
        let clock = ServerClock()
        let time = try #require(ServerClock.time("Sun, 06 Nov 1994 08:49:37 GMT"))
        #expect(time.timeIntervalSince1970 == 784_111_777)
        for text in ["", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 CET"]
        {
            #expect(ServerClock.time(text) == nil, "\(text)")
        }
        #expect(!clock.confirms(time))
        let now = ContinuousClock.now
        clock.note(
            HTTPReplyHead(status: 200, fields: [("date", "Sun, 06 Nov 1994 08:49:37 GMT")]), at: now)
        clock.note(HTTPReplyHead(status: 200, fields: []), at: now)
        #expect(clock.confirms(time, at: now) && clock.confirms(time.addingTimeInterval(-86_400), at: now))
        #expect(!clock.confirms(time.addingTimeInterval(86_402), at: now))
        #expect(clock.confirms(time.addingTimeInterval(90_000), at: now + .seconds(3_600 * 2)))
    }

    // MARK: Files that are open

    @Test(arguments: [false, true])
    func `what a program writes to a file that was displaced or deleted elsewhere comes back`(
        isDeleted: Bool
    ) async throws {
        try await withPair { phone, laptop, _ in
            try phone.write("one", to: "folder/log.txt")
            try await phone.sync.run()
            try await laptop.sync.run()
            let program = try FileHandle(forWritingTo: laptop.url("folder/log.txt"))
            try program.seekToEnd()
            if isDeleted { try phone.remove("folder/log.txt") } else { try phone.write("new", to: "folder/log.txt") }
            try await phone.sync.run()
            try await laptop.sync.run()
            #expect(laptop.files() == (isDeleted ? [:] : ["folder/log.txt": "new"]))
            #expect(laptop.trash() == ["one"])
            try program.write(contentsOf: Data(" and two".utf8))
            let report = try await laptop.sync.run()
            let copy = try #require(report.conflicts.first?.text)
            #expect(copy.hasPrefix("folder/log (conflict, laptop, ") && report.conflicts.count == 1)
            #expect(laptop.read(copy) == "one and two")
            // What the program writes from then on is in the folder.
            try program.write(contentsOf: Data(" and three".utf8))
            try await laptop.sync.run()
            try await phone.sync.run()
            #expect(phone.read(copy) == "one and two and three")
            #expect(try await laptop.sync.run().conflicts.isEmpty)
        }
    }

    @Test func `a program writes on to a file of which only the executable bit changes elsewhere`() async throws {
        try await withPair { phone, laptop, _ in
            try phone.write("one", to: "log.txt")
            try await phone.sync.run()
            try await laptop.sync.run()
            let program = try FileHandle(forWritingTo: laptop.url("log.txt"))
            try program.seekToEnd()
            for (mode, text) in [(mode_t(0o700), " and two"), (0o600, " and three")] {
                #expect(chmod(phone.url("log.txt").path, mode) == 0)
                try await phone.sync.run()
                let report = try await laptop.sync.run()
                #expect(report.downloaded.map(\.text) == ["log.txt"] && laptop.trash().isEmpty)
                #expect(
                    FileManager.default.isExecutableFile(atPath: laptop.url("log.txt").path) == (mode == 0o700))
                try program.write(contentsOf: Data(text.utf8))
                try await laptop.sync.run()
                try await phone.sync.run()
            }
            #expect(laptop.files() == ["log.txt": "one and two and three"])
            #expect(phone.files() == laptop.files())
        }
    }

    @Test func `a displaced file that already has the new content is in the trash`() throws {
        let folder = try TemporaryDirectory()
        let tree = try FolderTree(folder.path)
        try Data("new".utf8).write(to: URL(filePath: folder.path + "/a"))
        let program = try FileHandle(forWritingTo: URL(filePath: folder.path + "/a"))
        try program.seekToEnd()
        let part = try tree.parts.newPart()
        _ = Array("new".utf8).withUnsafeBytes { DiskFolders().write($0, to: part.file) }
        func content(_ text: String) -> FileContent {
            FileContent(digest: SHA256.hash(Array(text.utf8)).bytes, byteCount: 3, isExecutable: false)
        }
        #expect(
            tree.parts.place(
                part, at: try FolderPath("a"), over: content("old"), content("new"), modified: nil,
                aside: try FolderPath("a (conflict)")))
        try program.write(contentsOf: Data(" and more".utf8))
        let trash = folder.path + "/.saltern/trash/"
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: trash).first)
        #expect(try String(contentsOf: URL(filePath: trash + name), encoding: .utf8) == "new and more")
    }

    @Test func `a file in the trash that cannot be read is not removed`() throws {
        let folder = try TemporaryDirectory()
        let tree = try FolderTree(folder.path)
        let name = FolderTrash.newName(try FolderPath("a"))
        let path = folder.path + "/.saltern/trash/" + name
        try Data("one".utf8).write(to: URL(filePath: path))
        let digest = SHA256.hash(Array("one".utf8)).bytes
        #expect(
            tree.trash.isRemovable(name, digest) && !tree.trash.isRemovable(name, SHA256.hash(Array("two".utf8)).bytes))
        chmod(folder.path + "/.saltern/trash", 0o711)
        chmod(path, 0)
        // Root may read everything; this thread is another user for a moment.
        _ = setfsuid(65_534)
        let isRemovable = tree.trash.isRemovable(name, digest)
        _ = setfsuid(geteuid())
        #expect(!isRemovable)
        chmod(path, 0o600)
        try Data().write(to: URL(filePath: path))
        #expect(tree.trash.isRemovable(name, digest))
    }

    @Test func `a displaced file is not compared by its times alone when it is removed`() async throws {
        try await withPair { phone, laptop, clock in
            _ = try await deleteElsewhere(phone, laptop)
            clock.confirm(laptop.device.link)
            try await laptop.sync.run()
            // As a program writes that has it mapped: the kernel's times are those of before.
            try await laptop.vault.pretendUnchanged()
            for days in stride(from: 7.0, through: 70, by: 7) {
                clock.set(days)
                try await laptop.sync.run()
            }
            #expect(laptop.trash().isEmpty)
            #expect(Set(laptop.files().values).isSuperset(of: ["kept", "displaced"]))
        }
    }

    @Test func `a hard link does not change what the trash has`() async throws {
        try await withPair { phone, laptop, _ in
            try phone.write("one", to: "a")
            try phone.write("one more", to: "b")
            try await phone.sync.run()
            try await laptop.sync.run()
            let outside = try TemporaryDirectory(.memory)
            for name in ["a", "b"] {
                try FileManager.default.linkItem(atPath: laptop.url(name).path, toPath: outside.path + "/" + name)
            }
            try phone.write("new", to: "a")
            try phone.remove("b")
            try await phone.sync.run()
            try await laptop.sync.run()
            for name in ["a", "b"] {
                let other = try FileHandle(forWritingTo: URL(filePath: outside.path + "/" + name))
                try other.write(contentsOf: Data("XXX".utf8))
                try other.close()
            }
            #expect(laptop.trash() == ["one", "one more"])
            #expect(try await laptop.sync.run().conflicts.isEmpty)
            #expect(laptop.files() == ["a": "new"])
        }
    }
}

extension HTTPReplyHead {
    /// The same with another value of a field.
    fileprivate func replacing(_ name: String, _ value: String) -> HTTPReplyHead {
        HTTPReplyHead(status: status, fields: [(name, value)])
    }
}

extension Vault {
    /// The trash is noted with other contents than it has, and as read a while ago.
    fileprivate func pretendUnchanged() throws {
        try store.database.execute("UPDATE folder_trash SET digest = ?", .blob([UInt8](repeating: 7, count: 32)))
    }
}
