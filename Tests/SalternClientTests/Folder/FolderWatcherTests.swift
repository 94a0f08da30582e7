import CPlatform
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What the kernel says of a folder, and what is done when it cannot say everything.
@Suite struct FolderWatcherTests {
    /// A kernel that has room for so many folders; nil for one that has none for another watcher.
    private static func kernel(room: Int?) -> FolderWatchCalls {
        var calls = FolderWatchCalls.kernel
        guard let room else {
            calls.open = { nil }
            return calls
        }
        let paths = Mutex<Set<String>>([])
        calls.add = { descriptor, path, events in
            let folder = (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) ?? path
            let hasRoom = paths.withLock { paths in
                if paths.count < room { paths.insert(folder) }
                return paths.contains(folder)
            }
            return hasRoom ? FolderWatchCalls.kernel.add(descriptor, path, events) : nil
        }
        return calls
    }

    @Test(.timeLimit(.minutes(25)), arguments: [1, nil])
    func `folders that cannot be watched are looked through now and then, and that is said once`(
        room: Int?
    ) async throws {
        try await LiveServer.with { server in
            let device = try await FolderDevice("phone", server, isFirst: true)
            try device.write("one", to: "inner/a")
            let reports = Mutex<[FolderReport]>([])
            let watching = Task {
                try await device.sync.watch(Self.kernel(room: room), every: .milliseconds(100)) { report in
                    reports.withLock { $0.append(report) }
                }
            }
            while reports.withLock({ $0.isEmpty }) { try await Task.sleep(for: .milliseconds(20)) }
            // Its own changes of the vault are over.
            try await Task.sleep(for: .seconds(1))
            try device.write("two", to: "inner/b")
            while try await device.item("inner/b") == nil { try await Task.sleep(for: .milliseconds(20)) }
            let warnings = reports.withLock { $0.map { $0.warnings.count { $0.kind == .unwatched } } }
            #expect(warnings.first == 1)
            #expect(warnings.dropFirst().allSatisfy { $0 == 0 })
            watching.cancel()
            _ = await watching.result
        }
    }

    @Test(.timeLimit(.minutes(25))) func `who watches has agreed to deletions once, not to later ones`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            for number in 0..<12 { try phone.write("\(number)", to: "\(number)") }
            try await phone.sync.run()
            let (reports, continuation) = AsyncStream.makeStream(of: FolderReport.self)
            let watching = Task { try await laptop.agreeing.watch { continuation.yield($0) } }
            var hasDeleted = false
            for await report in reports {
                if report.isVaultHeld || !report.deletedHere.isEmpty { break }
                if hasDeleted || laptop.files().count < 12 { continue }
                for number in 0..<5 { try phone.remove("\(number)") }
                try await phone.agreeing.run()
                hasDeleted = true
            }
            watching.cancel()
            _ = await watching.result
            #expect(laptop.files().count == 12)
            // Of one who has not watched it is what they want each time.
            #expect(try await laptop.agreeing.run().deletedHere.count == 5)
        }
    }

    @Test func `it is known whether every folder is watched`() throws {
        let folder = try TemporaryDirectory(.memory)
        for name in ["a/b", "c", ".saltern/parts"] {
            try FileManager.default.createDirectory(
                atPath: folder.path + "/" + name, withIntermediateDirectories: true)
        }
        #expect(FolderWatcher(folder.path, Self.kernel(room: 4)) {}.watchAll())
        #expect(!FolderWatcher(folder.path, Self.kernel(room: 3)) {}.watchAll())
        #expect(!FolderWatcher(folder.path, Self.kernel(room: nil)) {}.watchAll())
        #expect(!FolderWatcher(folder.path + "/none") {}.watchAll())
    }

    @Test(.timeLimit(.minutes(25))) func `events that the kernel has lost are a change of anything`() async throws {
        let folder = try TemporaryDirectory(.memory)
        let limit = try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
        let count = try #require(Int(limit.trimmingCharacters(in: .whitespacesAndNewlines)))
        let changes = Mutex(0)
        let gate = DispatchSemaphore(value: 0)
        let watcher = FolderWatcher(folder.path) {
            // While the first is told, nobody reads.
            let number = changes.withLock { count in
                count += 1
                return count
            }
            if number == 1 { gate.wait() }
        }
        #expect(watcher.watchAll())
        func touch(_ name: String) {
            let file = open(folder.path + "/" + name, O_CREAT | O_WRONLY, 0o600)
            close(file)
            unlink(folder.path + "/" + name)
        }
        touch("first")
        while changes.withLock({ $0 }) == 0 { try await Task.sleep(for: .milliseconds(5)) }
        // Three events each.
        for number in 0...(count / 3) { touch(String(number)) }
        #expect(mkdir(folder.path + "/lost", 0o700) == 0)
        gate.signal()
        while changes.withLock({ $0 }) < 2 { try await Task.sleep(for: .milliseconds(5)) }
        #expect(watcher.watchAll())
        let before = changes.withLock { $0 }
        touch("lost/x")
        while changes.withLock({ $0 }) == before { try await Task.sleep(for: .milliseconds(5)) }
    }
}
