import Dispatch
import Foundation
import HTTPCore
import SalternServer
import Synchronization

/// Writes log lines to a descriptor from a separate thread, several at a time, so that a slow reader never delays a
/// request.
///
/// Lines of ten milliseconds are written together. Beyond four megabytes of unread lines, further ones are dropped and
/// counted. Lines that do not fit on the disk are dropped, too. The count is logged as soon as possible. A reader that
/// has stopped has no other effect: the thread sleeps until it continues, and ``flush(within:)`` has a time limit.
final class LogWriter: LogSink {
    private struct Pending {
        var bytes: [UInt8] = []
        var dropped = 0
        var isWriting = false
        /// Semaphores to signal when everything is written.
        var waiting: [DispatchSemaphore] = []

        var isEmpty: Bool { bytes.isEmpty && dropped == 0 && !isWriting }
    }

    private let descriptor: CInt
    private let kind: Kind
    private let pending = Mutex(Pending())
    // Safe to share: only the writer's thread accesses it.
    private nonisolated(unsafe) var losses = LogLosses()
    private let now: @Sendable () -> UTCTimestamp
    private let linesWait = DispatchSemaphore(value: 0)
    private let dropped = Atomic<Int>(0)

    private static let limit = 4 * 1_024 * 1_024
    /// The capacity, in bytes, that is kept for further lines.
    private static let keptCapacity = 64 * 1_024
    /// Lines within this time are written together.
    private static let gatheringMicroseconds: UInt32 = 10_000

    /// The kind of destination, which determines how to write without blocking indefinitely.
    private enum Kind {
        case file
        case socket
        /// A pipe or a terminal: when `poll` reports it writable, it accepts `PIPE_BUF` bytes.
        case pipe

        init(of descriptor: CInt) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else {
                self = .pipe
                return
            }
            switch status.st_mode & S_IFMT {
            case S_IFREG: self = .file
            case S_IFSOCK: self = .socket
            default: self = .pipe
            }
        }
    }

    /// - Parameters:
    ///   - descriptor: The destination. It stays open for the life of the process.
    ///   - now: Returns the time for lines that the writer adds.
    init(descriptor: CInt, now: @escaping @Sendable () -> UTCTimestamp) {
        self.descriptor = descriptor
        self.now = now
        kind = Kind(of: descriptor)
        // Retained by the thread, which runs for the life of the process.
        let thread = Thread { [self] in
            // It is swapped with the buffer that collects lines.
            var buffer: [UInt8] = []
            while true {
                linesWait.wait()
                usleep(Self.gatheringMicroseconds)
                writePending(&buffer)
            }
        }
        thread.name = "log"
        thread.start()
    }

    func write(_ line: ZeroizingBuffer, level: LogLevel) {
        let isFirst = pending.withLock { pending in
            let isFirst = pending.bytes.isEmpty && pending.dropped == 0
            if pending.bytes.count + line.count > Self.limit {
                pending.dropped += 1
                dropped.add(1, ordering: .relaxed)
            } else {
                line.withUnsafeBytes { pending.bytes.append(contentsOf: $0) }
            }
            return isFirst
        }
        if isFirst { linesWait.signal() }
    }

    var droppedLines: Int { dropped.load(ordering: .relaxed) }

    /// Waits until all lines so far are written or the time has passed. Returns true if they are written.
    @discardableResult
    func flush(within time: Duration) -> Bool {
        let written = DispatchSemaphore(value: 0)
        let isDone = pending.withLock { pending in
            if pending.isEmpty { return true }
            pending.waiting.append(written)
            return false
        }
        if isDone { return true }
        let milliseconds = Int(time / .milliseconds(1))
        return written.wait(timeout: .now() + .milliseconds(milliseconds)) == .success
    }

    /// Writes until no line is left. Only the writer's thread calls it, so lines stay in order.
    private func writePending(_ buffer: inout [UInt8]) {
        while true {
            buffer.removeAll(keepingCapacity: buffer.count <= Self.keptCapacity)
            let droppedBefore = pending.withLock { pending in
                swap(&pending.bytes, &buffer)
                let dropped = pending.dropped
                pending.dropped = 0
                pending.isWriting = !buffer.isEmpty || dropped > 0
                if !pending.isWriting {
                    for semaphore in pending.waiting { semaphore.signal() }
                    pending.waiting = []
                }
                return dropped
            }
            if buffer.isEmpty, droppedBefore == 0 { return }
            reportLosses()
            let unreported = losses.count
            if unreported == 0 { writeAll(buffer) } else { losses.note(buffer, writtenUpTo: 0) }
            dropped.add(losses.count - unreported, ordering: .relaxed)
            losses.count += droppedBefore
            reportLosses()
        }
    }

    /// Logs the number of dropped lines in a line of its own. If that fails, it is repeated with the next line.
    private func reportLosses() {
        guard losses.count > 0 else { return }
        let count = losses.count
        losses.count = 0
        var writer = JSONWriter(capacity: 128)
        writer.object { writer in
            writer.member("time", now())
            writer.member("level", LogLevel.error.rawValue)
            writer.member("event", "log_lines_dropped")
            writer.member("count", count)
        }
        writeAll(writer.finishLine().withUnsafeBytes { Array($0) })
        // This line does not count as dropped.
        if losses.count > 0 { losses.count = count }
    }

    /// Writes lines, and counts those that cannot be written because the disk is full or the reader has gone.
    private func writeAll(_ lines: [UInt8]) {
        if losses.isTorn {
            guard write([ASCII.lineFeed]) == 1 else { return losses.note(lines, writtenUpTo: 0) }
            losses.isTorn = false
        }
        losses.note(lines, writtenUpTo: write(lines))
    }

    /// Writes as much as possible. Returns the number of bytes.
    private func write(_ bytes: [UInt8]) -> Int {
        var written = 0
        while written < bytes.count {
            var wish = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&wish, 1, -1) > 0 else {
                if errno == EINTR { continue }
                return written
            }
            let count = bytes[written...].withUnsafeBytes { rest in
                switch kind {
                case .file: Foundation.write(descriptor, rest.baseAddress, rest.count)
                case .pipe: Foundation.write(descriptor, rest.baseAddress, min(rest.count, Int(PIPE_BUF)))
                case .socket:
                    send(descriptor, rest.baseAddress, rest.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
                }
            }
            // Another process may fill the pipe between the two calls.
            if count < 0 && errno != EINTR && errno != EAGAIN { return written }
            written += max(count, 0)
        }
        return written
    }
}

/// The dropped lines that are not yet reported.
struct LogLosses {
    var count = 0
    /// True if the last output is an incomplete line.
    var isTorn = false

    /// Counts whole lines of which only the first bytes were written.
    mutating func note(_ lines: [UInt8], writtenUpTo end: Int) {
        guard end < lines.count else { return }
        count += lines[end...].count { $0 == ASCII.lineFeed }
        guard end > 0 else { return }
        isTorn = lines[end - 1] != ASCII.lineFeed
        // Only its line end is missing, and follows.
        if lines[end] == ASCII.lineFeed { count -= 1 }
    }
}
