import Cryptography
import Foundation
import Synchronization
import Testing

@testable import SalternClient

/// How a stream is kept at its reader's pace, with a task that only counts.
struct URLSessionTransferTests {
    private final class Task: TransferTask {
        let calls = Mutex<[String]>([])

        func resume() { calls.withLock { $0.append("resume") } }
        func suspend() { calls.withLock { $0.append("suspend") } }
        func cancel() { calls.withLock { $0.append("cancel") } }
        var movedByteCount: Int64 { 0 }

        /// What was asked for since the last time.
        func take() -> [String] {
            calls.withLock { calls in
                defer { calls = [] }
                return calls
            }
        }
    }

    private func stream() -> (Task, URLSessionTransfer, ReplyBody) {
        let task = Task()
        let transfer = URLSessionTransfer(task, limit: nil)
        let body = ReplyBody(
            onRoom: { transfer.goOn() }, onAbandoned: { transfer.end(.failure(.cancelled)) })
        transfer.connect(body)
        return (task, transfer, body)
    }

    @Test func `the task waits while its reader has no room, and nothing is lost or out of order`() async throws {
        let (task, transfer, body) = stream()
        let sent = SecureRandom.bytes(ReplyBody.capacity * 3)
        for start in stride(from: 0, to: sent.count, by: 1_000) { transfer.receive(Data(sent[start...].prefix(1_000))) }
        #expect(task.take() == ["suspend"])
        transfer.end(.success(()))
        #expect(task.take() == ["cancel"])
        var received: [UInt8] = []
        for try await piece in body { received += piece }
        #expect(received == sent)
        #expect(task.take() == ["resume"])
    }

    @Test func `what goes on although it was told to wait is given up`() async throws {
        let (task, transfer, body) = stream()
        let piece = Data(count: 1 << 20)
        for _ in 0..<25 { transfer.receive(piece) }
        #expect(task.take() == ["suspend"])
        transfer.receive(piece)
        #expect(task.take() == ["cancel"])
        await #expect(throws: TransportError.connectionLost) { for try await _ in body {} }
    }

    @Test func `a body of exactly the limit is taken, and one of a byte more is not`() async throws {
        let task = Task()
        let transfer = URLSessionTransfer(task, limit: 10)
        transfer.receive(Data(count: 10))
        #expect(task.take() == [])
        transfer.receive(Data(count: 1))
        #expect(task.take() == ["cancel"])
        await #expect(throws: TransportError.unacceptableReply) { try await transfer.run() }
    }

    @Test func `whoever lets go of a stream ends its task`() {
        var (task, transfer, body): (Task, URLSessionTransfer, ReplyBody?) = stream()
        transfer.receive(Data(count: 1))
        #expect(body != nil && task.take() == [])
        body = nil
        #expect(task.take() == ["cancel"])
    }
}
