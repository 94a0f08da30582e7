import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// The queue of processes that wait for a store, and a store that is lent to them.
@Suite struct StoreTicketTests {
    @Test func `the turn is that of the process that has waited longest`() throws {
        let folder = try TemporaryDirectory(.memory)
        let url = URL(filePath: folder.path)
        #expect(!StoreTicket.isAwaited(url))
        var first = StoreTicket(in: url)
        let second = try #require(StoreTicket(in: url))
        #expect(first?.isFirst == true && !second.isFirst)
        #expect(StoreTicket.isAwaited(url))
        first = nil
        #expect(second.isFirst)
    }

    @Test func `a process that has ended holds up no other one`() throws {
        let folder = try TemporaryDirectory(.memory)
        try FileManager.default.createDirectory(
            atPath: folder.path + "/queue", withIntermediateDirectories: false)
        let left = folder.path + "/queue/00000000000000000001-1-x"
        #expect(FileManager.default.createFile(atPath: left, contents: nil))
        let ticket = try #require(StoreTicket(in: URL(filePath: folder.path)))
        #expect(ticket.isFirst)
        #expect(!FileManager.default.fileExists(atPath: left))
    }

    private final class Order: Sendable {
        private let numbers = Mutex<[Int]>([])
        var all: [Int] { numbers.withLock(\.self) }
        func add(_ number: Int) { numbers.withLock { $0.append(number) } }
    }

    /// Opens a store when it is free, and closes it again.
    private static func use(_ folder: String, _ number: Int, _ order: Order) async throws {
        try await StoreTicket.waiting(in: URL(filePath: folder), atMost: .seconds(3_600)) {
            do {
                let store = try Store(path: folder + "/store.sqlite")
                order.add(number)
                store.close()
            } catch let error as StoreError {
                throw VaultError.store(error)
            }
        }
    }

    private static func waitingCount(_ folder: String) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: folder + "/queue").count) ?? 0
    }

    @Test func `many that wait for a store get it one after another, in their order`() async throws {
        let folder = try TemporaryDirectory(.memory)
        let holder = try Store(path: folder.path + "/store.sqlite")
        let order = Order()
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<30 {
            let path = folder.path
            tasks.append(Task { try await Self.use(path, number, order) })
            while Self.waitingCount(path) <= number { try await Task.sleep(for: .milliseconds(1)) }
        }
        holder.close()
        for task in tasks { try await task.value }
        #expect(order.all == Array(0..<30))
    }

    @Test func `a store that is lent can be used by another process, and what it writes is noticed`() throws {
        let folder = try TemporaryDirectory(.memory)
        let path = folder.path + "/store.sqlite"
        let store = try Store(path: path)
        try store.set(.account, [1])
        let before = store.lend()
        #expect(store.fileState == before)
        try store.takeBack()
        #expect(store.fileState == before)
        #expect(try store.fact(.account) == [1])
        #expect(store.lend() == before)
        #expect(store.fileState == before)
        var other: Store? = try Store(path: path)
        #expect(throws: StoreError.inUse) { try store.takeBack() }
        #expect(store.isLent)
        let written = [UInt8](repeating: 2, count: 100_000)
        try other?.set(.account, written)
        other?.close()
        other = nil
        #expect(store.fileState != before)
        try store.takeBack()
        #expect(store.fileState != before)
        #expect(try store.fact(.account) == written)
    }

    @Test func `a write within a whole second of the clock is noticed`() throws {
        let folder = try TemporaryDirectory(.memory)
        let path = folder.path + "/store.sqlite"
        try #require(FileManager.default.createFile(atPath: path, contents: Data("1".utf8)))
        func state(writtenAt time: Date) throws -> StoreFileState {
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
            return StoreFileState(path: path)
        }
        // As a file system stores it that has no fractions of seconds.
        let second = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down))
        #expect(try state(writtenAt: second) != state(writtenAt: second))
        let hourBefore = second - 3_600
        #expect(try state(writtenAt: hourBefore) == state(writtenAt: hourBefore))
    }
}
