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

    @Test(.timeLimit(.minutes(60)), arguments: [1, nil])
    func `folders that cannot be watched are looked through now and then, and that is said once`(
        room: Int?
    ) async throws {
        try await LiveServer.with { server in
            let device = try await FolderDevice("phone", server, isFirst: true)
            try device.write("one", to: "inner/a")
            let (sync, kernel) = (device.sync, Self.kernel(room: room))
            try await WatchedFolder.run({ try await sync.watch(kernel, every: .milliseconds(100), $0) }) { reports in
                var warnings: [Int] = []
                _ = try await WatchedFolder.first(reports) { report in
                    // The folder of this file is not watched.
                    if warnings.isEmpty { try device.write("two", to: "inner/b") }
                    warnings.append(report.warnings.count { $0.kind == .unwatched })
                    return report.uploaded.map(\.text).contains("inner/b")
                }
                #expect(warnings.first == 1 && warnings.count > 1)
                #expect(warnings.dropFirst().allSatisfy { $0 == 0 })
            }
        }
    }

    @Test(.timeLimit(.minutes(60))) func `who watches has agreed to deletions once, not to later ones`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            for number in 0..<12 { try phone.write("\(number)", to: "\(number)") }
            try await phone.send()
            let sync = laptop.agreeing
            try await WatchedFolder.run({ try await sync.watch($0) }) { reports in
                _ = try await WatchedFolder.first(reports) { _ in laptop.files().count == 12 }
                for number in 0..<5 { try phone.remove("\(number)") }
                try await phone.send()
                let report = try await WatchedFolder.first(reports) { $0.isVaultHeld || !$0.deletedHere.isEmpty }
                #expect(report.deletedHere.isEmpty)
            }
            #expect(laptop.files().count == 12)
            // Of one who has not watched it is what they want each time.
            #expect(try await laptop.agreeing.run().deletedHere.count == 5)
        }
    }

    /// Nothing in the folder changes, and no item of the vault either: only the notice says that deletions wait.
    @Test(.timeLimit(.minutes(60)))
    func `deletions that begin to wait are reported without another change`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            for number in 0..<12 { try phone.write("\(number)", to: "\(number)") }
            try await phone.send()
            try await laptop.sync.run()
            // The kernel's events cause no round.
            var schedule = FolderSchedule()
            (schedule.quiet, schedule.longest) = (.seconds(86_400), .seconds(86_400))
            let (sync, late) = (laptop.sync, schedule)
            try await WatchedFolder.run({
                try await sync.watch(.kernel, every: .seconds(86_400), by: late, $0)
            }) { reports in
                _ = try await WatchedFolder.first(reports) { !$0.isOffline }
                for number in 0..<5 { try phone.remove("\(number)") }
                try await phone.send()
                #expect(try await WatchedFolder.first(reports) { $0.isVaultHeld }.deletedHere.isEmpty)
            }
            #expect(laptop.files().count == 12)
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

    @Test(.timeLimit(.minutes(60))) func `events that the kernel has lost are a change of anything`() async throws {
        let folder = try TemporaryDirectory(.memory)
        let limit = try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
        let count = try #require(Int(limit.trimmingCharacters(in: .whitespacesAndNewlines)))
        let number = Mutex(0)
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
        let gate = DispatchSemaphore(value: 0)
        let watcher = FolderWatcher(folder.path) {
            continuation.yield()
            let isFirst = number.withLock { number in
                number += 1
                return number == 1
            }
            // Until the gate opens, the kernel's events are not read.
            if isFirst { gate.wait() }
        }
        var told = changes.makeAsyncIterator()
        #expect(watcher.watchAll())
        func touch(_ name: String) {
            let file = open(folder.path + "/" + name, O_CREAT | O_WRONLY, 0o600)
            close(file)
            unlink(folder.path + "/" + name)
        }
        touch("first")
        await told.next()
        // Three events each.
        for number in 0...(count / 3) { touch(String(number)) }
        #expect(mkdir(folder.path + "/lost", 0o700) == 0)
        gate.signal()
        await told.next()
        #expect(watcher.watchAll())
        touch("lost/x")
        var seen: Set<[UInt8]> = []
        while !seen.contains(Array("lost/x".utf8)) {
            if watcher.nextDue == nil { await told.next() }
            seen.formUnion(watcher.take(at: .now + .seconds(60)))
        }
    }
}
